package webhook

import (
	"math/rand/v2"
	"time"
)

// retryDelays are the delays after failed attempts: about a day in all.
var retryDelays = []time.Duration{
	5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, 30 * time.Minute, time.Hour, 2 * time.Hour,
	4 * time.Hour, 4 * time.Hour, 6 * time.Hour, 6 * time.Hour,
}

const (
	retryJitter   = 0.2       // part of a delay that is random
	maxRetryAfter = time.Hour // that an endpoint may ask for
)

// retryDelay returns the delay after a delivery's failed attempt, counted from 1, and false if that
// was the last one. An endpoint may ask for a longer one.
func retryDelay(attempt int, asked time.Duration) (time.Duration, bool) {
	if attempt > len(retryDelays) {
		return 0, false
	}

	delay := retryDelays[attempt-1]
	delay += time.Duration((rand.Float64()*2 - 1) * retryJitter * float64(delay))

	return max(delay, min(asked, maxRetryAfter)), true
}
