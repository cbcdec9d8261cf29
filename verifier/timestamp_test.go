package verifier

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestATimestampIsAStrictDecimal(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "0", "01785000000", "+1785000000", "-1785000000", "1785000000.0", "1785000000 ", " 1785000000",
		"1785000000s", "1e9", "0x6a", "１７８５０００００００", "1_785_000_000", "178500000000000", "17850000000000000000000000",
	} {
		if at, ok := (Timestamp{}).parse(text); ok {
			t.Errorf("%q gives %v", text, at)
		}
	}
	for _, test := range []struct {
		t    Timestamp
		text string
		want time.Time
	}{
		{Timestamp{}, "1", time.Unix(1, 0)},
		{Timestamp{Digits: 10}, "1785000000", time.Unix(1_785_000_000, 0)},
		{Timestamp{Unit: UnitMilliseconds}, "1785000000123", time.UnixMilli(1_785_000_000_123)},
		{Timestamp{}, "99999999999999", time.Unix(99_999_999_999_999, 0)},
	} {
		at, ok := test.t.parse(test.text)
		if !ok || !at.Equal(test.want) || test.t.format(at) != test.text {
			t.Errorf("%q: %v, %v", test.text, at, ok)
		}
	}
	for _, text := range []string{"178500000", "17850000000"} {
		if _, ok := (Timestamp{Digits: 10}).parse(text); ok {
			t.Errorf("%q has not 10 digits", text)
		}
	}
}

func TestTheWindowHasTwoInclusiveEdges(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_785_000_000, 0)
	const tolerance = 5 * time.Minute
	for _, test := range []struct {
		age    time.Duration
		reason Reason
		detail string
	}{
		{0, "", ""},
		{tolerance, "", ""},
		{-tolerance, "", ""},
		{tolerance + time.Millisecond, ReasonStale, "signed 5m0.001s ago, at most 5m0s"},
		{-tolerance - time.Second, ReasonFuture, "signed 5m1s ahead"},
		{250 * 365 * 24 * time.Hour, ReasonStale, "centuries"},
	} {
		err := Timestamp{Unit: UnitMilliseconds}.inWindow(now.Add(-test.age), now, tolerance)
		var refusal *Error
		if test.reason == "" {
			if err != nil {
				t.Errorf("age %s: %v", test.age, err)
			}
			continue
		}
		if !errors.As(err, &refusal) || refusal.Reason != test.reason || !strings.Contains(refusal.Detail, test.detail) {
			t.Errorf("age %s: %v", test.age, err)
		}
	}
}

func TestTheOtherUnitIsHintedAt(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_785_000_000, 0)
	for _, test := range []struct {
		t      Timestamp
		text   string
		reason Reason
		hint   string
	}{
		{Timestamp{Unit: UnitSeconds}, "1785000000000", ReasonFuture, "read as ms"},
		{Timestamp{Unit: UnitMilliseconds}, "1785000000", ReasonStale, "read as s"},
	} {
		at, _ := test.t.parse(test.text)
		err := test.t.inWindow(at, now, time.Minute)
		var refusal *Error
		if !errors.As(err, &refusal) || refusal.Reason != test.reason || !strings.Contains(refusal.Detail, test.hint) {
			t.Errorf("%s: %v", test.text, err)
		}
	}
}
