package pgcluster

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/google/uuid"
)

// Names maps projects to database and login names.
//
// PostgreSQL shows all database and login names to every login. Names therefore carry the project's
// UUID encrypted, as one AES block, under the install's key. The zero Names, for installs without a
// key, use the UUID itself.
type Names struct{ block cipher.Block }

// NewNames returns the names under a key of 16 bytes, or the zero Names if key is empty.
func NewNames(key []byte) (Names, error) {
	if len(key) == 0 {
		return Names{}, nil
	}

	block, err := aes.NewCipher(key)
	if err != nil {
		return Names{}, fmt.Errorf("database name key: %w", err)
	}

	return Names{block}, nil
}

// namePrefix and the 32 hexadecimal digits after it name a project's database.
const namePrefix = "socle_"

// Database returns the name of a project's database.
func (n Names) Database(project uuid.UUID) string {
	if n.block != nil {
		n.block.Encrypt(project[:], project[:])
	}
	return namePrefix + hex.EncodeToString(project[:])
}

// Login returns the name of a project's login.
func (n Names) Login(project uuid.UUID, l Login) string { return n.Database(project) + "_" + l.name }

// OwnerLogin returns the name of a project's owner login.
func (n Names) OwnerLogin(project uuid.UUID) string { return n.Login(project, Owner) }

// DumpLogin returns the name of the login that backs up a project.
func (n Names) DumpLogin(project uuid.UUID) string { return n.Login(project, Dump) }

// OwnerLoginOf returns the owner login's name for a project database's name.
func OwnerLoginOf(database string) string { return database + "_" + Owner.name }

// ProjectOf returns the project that a database or login belongs to, by name. It reports false for
// names in another form. Another install's name yields a UUID that no project has.
func (n Names) ProjectOf(name string) (project uuid.UUID, ok bool) {
	digits, ok := strings.CutPrefix(name, namePrefix)
	if !ok || len(digits) < hex.EncodedLen(len(project)) {
		return uuid.Nil, false
	}

	if _, err := hex.Decode(project[:], []byte(digits[:hex.EncodedLen(len(project))])); err != nil {
		return uuid.Nil, false
	}

	if n.block != nil {
		n.block.Decrypt(project[:], project[:])
	}

	return project, true
}
