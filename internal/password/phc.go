package password

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/crypto/argon2"
)

// phc is a hash with its parameters.
type phc struct {
	memory    uint32 // KiB
	passes    uint32
	lanes     uint8
	salt, key []byte
}

// String returns the hash as a PHC string.
func (p phc) String() string {
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, p.memory, p.passes, p.lanes,
		base64.RawStdEncoding.EncodeToString(p.salt), base64.RawStdEncoding.EncodeToString(p.key))
}

// ErrMalformed is the cause of an error of [Hasher.Verify] about a hash that it does not accept.
var ErrMalformed = errors.New("stored hash is malformed or too costly")

// Bounds of a hash that [Hasher.Verify] accepts. A project's owner writes hashes by SQL, and
// auth.check_hash has the same bounds.
const (
	maxMemory = 4 * memory          // KiB
	maxCost   = 4 * memory * passes // memory times passes
	maxPasses = 99
	maxLanes  = 99
)

// parse parses String's output. Bounds keep a damaged row from exhausting memory and time. Its
// errors do not repeat the text.
func parse(text string) (phc, error) {
	parts := strings.Split(text, "$")
	if len(parts) != 6 {
		return phc{}, ErrMalformed
	}

	var p phc
	if _, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &p.memory, &p.passes, &p.lanes); err != nil {
		return phc{}, ErrMalformed
	}

	p.salt, _ = base64.RawStdEncoding.DecodeString(parts[4])
	p.key, _ = base64.RawStdEncoding.DecodeString(parts[5])

	if p.memory < 1 || p.memory > maxMemory || p.passes < 1 || p.passes > maxPasses ||
		uint64(p.memory)*uint64(p.passes) > maxCost || p.lanes < 1 || p.lanes > maxLanes || len(p.key) != keySize ||
		p.String() != text {
		return phc{}, ErrMalformed
	}

	return p, nil
}
