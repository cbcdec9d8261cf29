package verifier

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
)

const sentinel = "c2VjcmV0LXNlbnRpbmVs"

func mustSecret(t testing.TB, text string) Secret {
	t.Helper()
	s, err := NewSecret(text, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestASecretNeverPrints(t *testing.T) {
	t.Parallel()
	secret := mustSecret(t, sentinel)
	scheme, err := HMAC{Header: "X-Sig"}.New(Options{Secrets: []Secret{secret}})
	if err != nil {
		t.Fatal(err)
	}
	type hidden struct{ inner Secret }
	for name, value := range map[string]any{
		"a secret":                      secret,
		"a pointer":                     &secret,
		"a slice":                       []Secret{secret},
		"a map":                         map[string]Secret{"a": secret},
		"options":                       Options{Secrets: []Secret{secret}},
		"an unexported field":           hidden{secret},
		"a pointer to a struct with it": &hidden{secret},
		"a compiled verifier":           scheme,
	} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%10.3s", "%T"} {
			leaks(t, name+" "+verb, fmt.Sprintf(verb, value))
		}
		if data, err := json.Marshal(value); err == nil {
			leaks(t, name+" as JSON", string(data))
		}
		var log bytes.Buffer
		slog.New(slog.NewTextHandler(&log, nil)).Info("x", "v", value)
		slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "v", value)
		leaks(t, name+" in slog", log.String())
	}
	if text, _ := secret.MarshalText(); string(text) != redacted || secret.String() != redacted {
		t.Error("the text form is not REDACTED")
	}
}

// leaks looks for the sentinel as text, as hex and as the numbers of its bytes.
func leaks(t *testing.T, what, out string) {
	t.Helper()
	hex := fmt.Sprintf("%x", sentinel)
	numbers := strings.Trim(fmt.Sprintf("%d", []byte(sentinel)), "[]")
	for _, form := range []string{sentinel, hex, strings.ToUpper(hex), numbers} {
		if strings.Contains(out, form) {
			t.Errorf("%s shows the secret", what)
		}
	}
}

func TestNewSecretTrimsOneNewlineAndRefusesBlank(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"a": "a", "a\n": "a", "a\r\n": "a", "a\n\n": "a\n", "a\r": "a\r", " a ": " a ", "a\nb\n": "a\nb",
	} {
		if got := mustSecret(t, in).Reveal(); got != want {
			t.Errorf("%q gives %q, want %q", in, got, want)
		}
	}
	for _, in := range []string{"", " ", "\n", "\r\n", "\t\n", "\n\n"} {
		if _, err := NewSecret(in, time.Time{}); !errors.Is(err, ErrEmptySecret) {
			t.Errorf("%q: %v", in, err)
		}
	}
}

func TestASecretEndsAtUntil(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_785_000_000, 0)
	for _, test := range []struct {
		until time.Time
		want  bool
	}{{time.Time{}, true}, {now.Add(1), true}, {now, false}, {now.Add(-1), false}} {
		s, err := NewSecret("a", test.until)
		if err != nil || s.Active(now) != test.want || !s.Until().Equal(test.until) {
			t.Errorf("until %v: active %v, want %v", test.until, s.Active(now), test.want)
		}
	}
}

func TestSecretsCompareByText(t *testing.T) {
	t.Parallel()
	a, b := mustSecret(t, "a"), mustSecret(t, "b")
	if !a.Equal(mustSecret(t, "a\n")) || a.Equal(b) || a.Equal(Secret{}) || !(Secret{}).Equal(Secret{}) {
		t.Error("Equal is wrong")
	}
}

func TestKeysDecode(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		encoding KeyEncoding
		text     string
		want     string
	}{
		{"", "whsec_abc", "whsec_abc"},
		{KeyUTF8, "grüße", "grüße"},
		{KeyHex, "6162", "ab"},
		{KeyHex, "6A6b", "jk"},
		{KeyBase64, "YWI=", "ab"},
		{KeyBase64, "YWI", "ab"},
		{KeyWhsec, "whsec_YWI=", "ab"},
		{KeyWhsec, "YWI=", "ab"},
		{KeyWhsec, "v1,whsec_YWI=", "ab"},
	} {
		if key, err := test.encoding.decode(test.text, 0); err != nil || string(key) != test.want {
			t.Errorf("%s %q: %q, %v", test.encoding, test.text, key, err)
		}
	}
}

func TestAMalformedKeyIsRefusedWithoutShowingIt(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		encoding KeyEncoding
		text     string
		size     int
		says     string
	}{
		{KeyWhsec, "whsec_sentinel!value", 0, `"whsec_" and base64`},
		{KeyWhsec, "whsec_sentinel\nvalue", 0, `"whsec_" and base64`},
		{KeyWhsec, "whsec_whsec_sentinel", 0, `"whsec_" and base64`},
		{KeyWhsec, "whsk_sentinelvalue", 0, "asymmetric"},
		{KeyWhsec, "whpk_sentinelvalue", 0, "asymmetric"},
		{KeyWhsec, "whsec_", 0, "empty key"},
		{KeyWhsec, "v1,whsec_====", 0, "empty key"},
		{KeyHex, "sentinel", 0, "hex digits"},
		{KeyHex, "abc", 0, "hex digits"},
		{KeyHex, "abcd", 32, "exactly 32"},
		{KeyBase64, "sentinel-value_", 0, "base64"},
		{KeyUTF8, "", 0, "empty key"},
		{"rot13", "sentinel", 0, "unknown key encoding"},
	} {
		key, err := test.encoding.decode(test.text, test.size)
		if err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v, %v; want an error with %q", test.encoding, key, err, test.says)
			continue
		}
		if strings.Contains(err.Error(), "sentinel") || strings.Contains(err.Error(), "!") {
			t.Errorf("%s: the error shows the value: %v", test.encoding, err)
		}
	}
}
