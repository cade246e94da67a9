package outbound

import (
	"net/http"
	"testing"
	"time"
)

// TestSignWebhook signs the example of the standard's libraries.
func TestSignWebhook(t *testing.T) {
	t.Parallel()

	const example = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	for _, secret := range []string{example, "v1," + example} {
		key, err := ParseWebhookSecret(secret)
		if err != nil {
			t.Fatal(err)
		}

		h := http.Header{}
		SignWebhook(h, key, "msg_p5jXN8AQM9LWM0D4loKWxJek", time.Unix(1614265330, 0), []byte(`{"test": 2432232314}`))
		for name, want := range map[string]string{"Webhook-Id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
			"Webhook-Timestamp": "1614265330",
			"Webhook-Signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="} {
			if got := h.Get(name); got != want {
				t.Errorf("%s: got %q, want %q", name, got, want)
			}
		}
	}

	for _, secret := range []string{"", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_!", "whsec_MfKQ9r8G"} {
		if _, err := ParseWebhookSecret(secret); err == nil {
			t.Errorf("ParseWebhookSecret(%q) succeeds", secret)
		}
	}
}
