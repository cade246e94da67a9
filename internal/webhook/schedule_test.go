package webhook

import (
	"testing"
	"time"
)

// TestRetryDelay: a delivery is given up after about a day, and an endpoint can ask for some time.
func TestRetryDelay(t *testing.T) {
	t.Parallel()

	var total time.Duration
	attempts := 1
	for {
		delay, more := retryDelay(attempts, 0)
		if !more {
			break
		}
		total += delay
		attempts++
	}
	if attempts != 12 || total < 18*time.Hour || total > 30*time.Hour {
		t.Errorf("got %d attempts in %v", attempts, total)
	}

	for asked, want := range map[time.Duration]time.Duration{time.Minute: time.Minute, 48 * time.Hour: maxRetryAfter} {
		if got, _ := retryDelay(1, asked); got != want {
			t.Errorf("asked for %v: got %v, want %v", asked, got, want)
		}
	}
}
