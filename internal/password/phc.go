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

var errMalformed = errors.New("stored hash is not a valid argon2id hash")

// parse parses String's output. Bounds keep a damaged row from exhausting memory. Its errors do not
// repeat the text.
func parse(text string) (phc, error) {
	parts := strings.Split(text, "$")
	if len(parts) != 6 {
		return phc{}, errMalformed
	}

	var p phc
	if _, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &p.memory, &p.passes, &p.lanes); err != nil {
		return phc{}, errMalformed
	}

	p.salt, _ = base64.RawStdEncoding.DecodeString(parts[4])
	p.key, _ = base64.RawStdEncoding.DecodeString(parts[5])

	if p.memory > 1<<20 || p.passes < 1 || p.passes > 100 || p.lanes < 1 || len(p.key) != keySize ||
		p.String() != text {
		return phc{}, errMalformed
	}

	return p, nil
}
