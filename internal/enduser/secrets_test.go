package enduser

import (
	"bytes"
	"errors"
	"testing"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/token"
)

// TestSecretsAreSealed: the stored secrets open only for their project.
func TestSecretsAreSealed(t *testing.T) {
	t.Parallel()

	r := &projectdb.Registry{}
	project := uuid.New()
	sealed, err := Secrets{"providers.github": "s3cret"}.seal(r, project)
	if err != nil || bytes.Contains(sealed, []byte("s3cret")) || bytes.Contains(sealed, []byte("github")) {
		t.Fatalf("got %q, %v", sealed, err)
	}

	if opened, err := openSecrets(r, project, sealed); err != nil || opened["providers.github"] != "s3cret" {
		t.Errorf("got %v, %v", opened, err)
	}
	if _, err := openSecrets(r, uuid.New(), sealed); !errors.Is(err, token.ErrSealed) {
		t.Errorf("another project: got %v, want %v", err, token.ErrSealed)
	}
}
