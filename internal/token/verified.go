package token

import (
	"crypto/sha256"
	"sync"
)

// maxVerifiedTokens bounds the cache.
const maxVerifiedTokens = 4096

// tokenCache caches payloads whose signature was verified. Clients send the same token with every
// request, and the verification costs more than the rest of the request. Claims are checked on
// every use.
type tokenCache struct {
	mu       sync.Mutex
	payloads map[[sha256.Size]byte]payload
}

func (s *tokenCache) get(token string) (payload, bool) {
	sum := sha256.Sum256([]byte(token))

	s.mu.Lock()
	defer s.mu.Unlock()

	p, ok := s.payloads[sum]
	return p, ok
}

func (s *tokenCache) add(token string, p payload) {
	sum := sha256.Sum256([]byte(token))

	s.mu.Lock()
	defer s.mu.Unlock()

	if s.payloads == nil || len(s.payloads) >= maxVerifiedTokens {
		s.payloads = map[[sha256.Size]byte]payload{}
	}

	s.payloads[sum] = p
}
