package outbound

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestSignWebhook signs the example of the standard's libraries.
func TestSignWebhook(t *testing.T) {
	t.Parallel()

	const example = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	const signature = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
	const other = "whsec_c29jbGUgc2lnbnMgd2l0aCB0d28ga2V5cw=="
	const otherSignature = "v1,RvWqKm+5gLaEpGSwD0Ze1LteGJj4b5QrzhqoszdbPFY="
	for secret, signatures := range map[string]string{example: signature, "v1," + example: signature,
		"v1," + example + "|v1," + other: signature + " " + otherSignature,
		"v1," + other + "|v1," + example: otherSignature + " " + signature} {
		keys, err := ParseWebhookSecrets(secret)
		if err != nil {
			t.Fatal(err)
		}

		h := http.Header{}
		SignWebhook(h, keys, "msg_p5jXN8AQM9LWM0D4loKWxJek", time.Unix(1614265330, 0), []byte(`{"test": 2432232314}`))
		for name, want := range map[string]string{"Webhook-Id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
			"Webhook-Timestamp": "1614265330",
			"Webhook-Signature": signatures} {
			if got := h.Get(name); got != want {
				t.Errorf("%s: got %q, want %q", name, got, want)
			}
		}
	}

	for _, secret := range []string{"", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_!", "whsec_MfKQ9r8G", example + "|",
		example + " " + other, "v1a,whsk_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", strings.Repeat(example+"|", 5) + example} {
		if _, err := ParseWebhookSecrets(secret); err == nil {
			t.Errorf("ParseWebhookSecrets(%q) succeeds", secret)
		}
	}
}
