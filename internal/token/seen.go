package token

import (
	"crypto/sha256"
	"sync"
)

// mostSigned bounds the cache.
const mostSigned = 4096

// signedTokens caches the payloads of tokens whose signature was verified. Clients send the same
// token with every request, and the verification costs more than the rest of the request. Claims
// are checked on every use.
type signedTokens struct {
	mu   sync.Mutex
	said map[[sha256.Size]byte]payload
}

func (s *signedTokens) get(token string) (payload, bool) {
	sum := sha256.Sum256([]byte(token))

	s.mu.Lock()
	defer s.mu.Unlock()

	p, ok := s.said[sum]
	return p, ok
}

func (s *signedTokens) add(token string, p payload) {
	sum := sha256.Sum256([]byte(token))

	s.mu.Lock()
	defer s.mu.Unlock()

	if s.said == nil || len(s.said) >= mostSigned {
		s.said = map[[sha256.Size]byte]payload{}
	}

	s.said[sum] = p
}
