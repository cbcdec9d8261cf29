package verifier_test

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/einlass/einlass/verifier"
	"github.com/einlass/einlass/verifier/verifiertest"
)

// secretsFor are two well-formed secrets of a preset, taken in the shape of its
// vectors, so that a new preset needs no line here.
func secretsFor(t testing.TB, name string) []string {
	t.Helper()
	files, err := verifiertest.LoadVectors("testdata")
	if err != nil {
		t.Fatal(err)
	}
	var secrets []string
	for _, file := range files {
		if file.Provider != name {
			continue
		}
		for _, v := range file.Cases {
			list, ok := v.Secrets()
			if !ok {
				continue
			}
			if text := list[0].Reveal(); len(secrets) == 0 || secrets[0] != text {
				secrets = append(secrets, text)
			}
			if len(secrets) == 2 {
				return secrets
			}
		}
	}
	t.Fatalf("%s: testdata has no two secrets", name)
	return nil
}

// sampleOf is a preset's sample delivery, unsigned, with its words filled in.
func sampleOf(p *verifier.Preset) (http.Header, string) {
	fill := strings.NewReplacer("{id}", "evt-1", "{type}", p.Sample.Type, "{n}", "1")
	header := http.Header{}
	for name, values := range p.Sample.Header {
		for _, value := range values {
			header.Add(name, fill.Replace(value))
		}
	}
	return header, fill.Replace(p.Sample.Body)
}

func TestEveryPresetPassesTheConformanceSuite(t *testing.T) {
	t.Parallel()
	for _, p := range verifier.Presets() {
		header, body := sampleOf(p)
		verifiertest.Exercise(t, p.Name, p.New, verifiertest.Subject{
			Secrets:   secretsFor(t, p.Name),
			Header:    header,
			Body:      []byte(body),
			Tolerance: p.Tolerance,
		})
	}
}

func TestEachVariantPassesTheConformanceSuite(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"svix", "shopify"} {
		p, _ := verifier.LookupPreset(name)
		header := http.Header{}
		for _, part := range []string{"Topic", "Shop-Domain", "Api-Version", "Webhook-Id"} {
			header.Set("shopify-"+part, "x")
		}
		verifiertest.Exercise(t, name+" second", p.Variants[1].New, verifiertest.Subject{
			Secrets: secretsFor(t, name), Header: header, Tolerance: p.Tolerance,
		})
	}
}

func TestDeclaredSchemesPassTheConformanceSuite(t *testing.T) {
	t.Parallel()
	key := base64.StdEncoding.EncodeToString([]byte("0123456789abcdef"))
	other := base64.StdEncoding.EncodeToString([]byte("fedcba9876543210"))
	for name, test := range map[string]struct {
		scheme  verifier.HMAC
		secrets []string
		header  http.Header
	}{
		"text behind the body": {
			verifier.HMAC{Header: "X-Sig", Content: "{body}|{timestamp}", Timestamp: verifier.Timestamp{Header: "X-Time"}},
			[]string{"first-secret", "second-secret"}, nil,
		},
		"url, method and a header in sha512 and base64url": {
			verifier.HMAC{
				Header: "X-Sig", Digest: verifier.DigestSHA512, Encoding: verifier.EncodingBase64URL,
				Key: verifier.KeyBase64, Content: "{method} {url} {header.X-Topic}\n{body}",
			},
			[]string{key, other}, http.Header{"X-Topic": {"orders"}},
		},
		"sha384 with a prefix": {
			verifier.HMAC{Header: "X-Sig", Digest: verifier.DigestSHA384, Format: verifier.FormatPrefix, Prefix: "hmac "},
			[]string{"first-secret", "second-secret"}, nil,
		},
		"sha1 in a list without a time": {
			verifier.HMAC{Header: "X-Sig", Digest: verifier.DigestSHA1, Format: verifier.FormatList, Separator: ";", Assign: ":", Field: "s"},
			[]string{"first-secret", "second-secret"}, nil,
		},
		"a list of bare signatures": {
			verifier.HMAC{
				Header: "X-Sig", Format: verifier.FormatList, Bare: true, Encoding: verifier.EncodingBase64,
				Content: "{timestamp}.{body}", Timestamp: verifier.Timestamp{Field: "t"},
			},
			[]string{"first-secret", "second-secret"}, nil,
		},
		"a time that is signed as a header": {
			verifier.HMAC{Header: "X-Sig", Content: "{header.X-Time}:{body}", Timestamp: verifier.Timestamp{Header: "x-time", Unit: "ms"}},
			[]string{"first-secret", "second-secret"}, nil,
		},
	} {
		subject := verifiertest.Subject{Secrets: test.secrets, Header: test.header}
		if test.scheme.Timestamp != (verifier.Timestamp{}) {
			subject.Tolerance = verifier.DefaultTolerance
		}
		verifiertest.Exercise(t, name, test.scheme.New, subject)
	}
	verifiertest.Exercise(t, "without a body", verifier.HMAC{
		Header: "X-Sig", Content: "{id}.{timestamp}", ID: verifier.ID{Header: "X-Id"},
		Timestamp: verifier.Timestamp{Header: "X-Time"}, Tolerance: time.Minute,
	}.New, verifiertest.Subject{Secrets: []string{"first-secret", "second-secret"}, BodyUnsigned: true, Tolerance: time.Minute})
}
