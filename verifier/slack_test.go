package verifier

import (
	"net/http"
	"strings"
	"testing"
)

func TestSlackEchoesOnlyAPlainChallenge(t *testing.T) {
	t.Parallel()
	p, _ := LookupPreset("slack")
	if p.Handshake == nil || !p.Handshake.Signed || len(p.Handshake.Methods) != 0 {
		t.Fatal("the handshake is a signed POST")
	}
	long := strings.Repeat("a", 512)
	for body, want := range map[string]string{
		`{"type":"url_verification","token":"t","challenge":"3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P"}`: "3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P",
		`{"type":"url_verification","challenge":"` + long + `"}`:                                                     long,
		`{"type":"url_verification","challenge":"a-b_c.d=e/f+g h"}`:                                                  "a-b_c.d=e/f+g h",
		`{"type":"url_verification","challenge":"` + long + `a"}`:                                                    "",
		`{"type":"url_verification","challenge":""}`:                                                                 "",
		`{"type":"url_verification","challenge":7}`:                                                                  "",
		`{"type":"url_verification"}`:                                                                                "",
		`{"type":"url_verification","challenge":"<script>"}`:                                                         "",
		`{"type":"url_verification","challenge":"\u003cb"}`:                                                          "",
		`{"type":"url_verification","challenge":"a\r\nSet-Cookie: x"}`:                                               "",
		`{"type":"url_verification","challenge":"grün"}`:                                                             "",
		`{"type":"url_verification","challenge":"a\u0000"}`:                                                          "",
		`{"TYPE":"url_verification","CHALLENGE":"abc"}`:                                                              "",
		`{"type":"event_callback","challenge":"abc"}`:                                                                "",
		`{"type":"event_callback","text":"\"url_verification\"","challenge":"abc","x":"url_verification"}`:           "",
		`{"type":"url_verification","challenge":"abc"} trailing`:                                                     "",
		`["url_verification"]`:                                                                                       "",
		`"url_verification"`:                                                                                         "",
		``:                                                                                                           "",
	} {
		reply, ok := p.Handshake.Answer(Request{}, []byte(body))
		if ok != (want != "") || string(reply.Body) != want {
			t.Errorf("%.80s: %q, %v", body, reply.Body, ok)
		}
		if ok && (reply.Status != http.StatusOK || reply.ContentType != "text/plain") {
			t.Errorf("%.80s: %+v", body, reply)
		}
	}
}
