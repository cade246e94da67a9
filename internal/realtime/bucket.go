package realtime

import "time"

// Bucket is a token bucket. It starts full. It is not safe for concurrent use.
type Bucket struct {
	rate, burst float64
	tokens      float64
	filledAt    time.Time
}

// NewBucket returns a bucket that gains rate tokens a second, up to burst.
func NewBucket(rate, burst float64) Bucket { return Bucket{rate: rate, burst: burst, tokens: burst} }

// Take takes n tokens and reports whether there were as many. If not, it takes none.
func (b *Bucket) Take(now time.Time, n float64) bool {
	b.fill(now)
	if b.tokens < n {
		return false
	}

	b.tokens -= n
	return true
}

// Return gives back n tokens that were not used.
func (b *Bucket) Return(n float64) { b.tokens = min(b.burst, b.tokens+n) }

// SetRate changes the rate and the burst from now on.
func (b *Bucket) SetRate(now time.Time, rate, burst float64) {
	if b.rate == rate && b.burst == burst {
		return
	}

	b.fill(now)
	b.rate, b.burst, b.tokens = rate, burst, min(burst, b.tokens)
}

// Reserve takes a token that may not be there yet, and returns the time until it is.
func (b *Bucket) Reserve(now time.Time) time.Duration {
	b.fill(now)
	b.tokens--
	if b.tokens >= 0 {
		return 0
	}

	return time.Duration(-b.tokens / b.rate * float64(time.Second))
}

// isFull reports whether the bucket is as a new one.
func (b *Bucket) isFull(now time.Time) bool {
	b.fill(now)
	return b.tokens == b.burst
}

func (b *Bucket) fill(now time.Time) {
	if !b.filledAt.IsZero() && now.After(b.filledAt) {
		b.tokens = min(b.burst, b.tokens+now.Sub(b.filledAt).Seconds()*b.rate)
	}
	b.filledAt = now
}
