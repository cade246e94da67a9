package token

import (
	"crypto/sha256"
	"sync"
)

// mostSigned is how many tokens are remembered.
const mostSigned = 4096

// signedTokens remembers what tokens say whose signature was found good: a client sends the same one with each of its requests, and
// judging the signature costs more than all the rest of it. What they say is judged anew each time.
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
