package cli

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/socle-dev/socle/internal/repository"
	"github.com/socle-dev/socle/internal/tick"
)

// repositoryLink is this machine's record of a repository: its project on a server, and the keys
// and hashes that the API shows once or never. It is no part of the repository.
type repositoryLink struct {
	Folder  string `json:"folder"`
	Server  string `json:"server"`
	Project string `json:"project,omitempty"` // UUID

	Creation string `json:"creation,omitempty"` // idempotency key of a creation whose answer is unknown
	KeyUUID  string `json:"keyUuid,omitempty"`  // the publishable key
	Key      string `json:"key,omitempty"`

	Salt    string            `json:"salt,omitempty"`
	Secrets map[string]string `json:"secrets,omitempty"` // keyed hashes of the secrets that were set, by name
}

// repositoryLinks are the links of this machine.
type repositoryLinks struct {
	Repositories []repositoryLink `json:"repositories"`
}

// linksFile returns the path of the links, beside the log-in.
func (e environment) linksFile() (string, error) {
	name, err := e.accountFile()
	if err != nil {
		return "", err
	}

	return filepath.Join(dirOf(name), "repositories.json"), nil
}

// withLink loads the link of a folder to a server, a new one if there is none, runs f on it and
// stores changes.
func (e environment) withLink(folder, server string, f func(l *repositoryLink) error) error {
	name, err := e.linksFile()
	if err != nil {
		return err
	}

	var all repositoryLinks
	return withStored(name, &all, func() error {
		i := slices.IndexFunc(all.Repositories, func(l repositoryLink) bool {
			return l.Folder == folder && l.Server == server
		})
		if i < 0 {
			i = len(all.Repositories)
			added := repositoryLink{Folder: folder, Server: server, Salt: rand.Text()}
			all.Repositories = append(all.Repositories, added)
		}

		if err := f(&all.Repositories[i]); err != nil {
			return err
		}

		all.Repositories = slices.DeleteFunc(all.Repositories, func(l repositoryLink) bool {
			return l.Project == "" && l.Creation == ""
		})

		return nil
	})
}

// setProject links the project. What belongs to another one is dropped.
func (l *repositoryLink) setProject(id string) {
	if l.Project != id {
		l.KeyUUID, l.Key, l.Secrets = "", "", nil
	}

	l.Project, l.Creation = id, ""
}

// hash returns the keyed hash of a secret.
func (l *repositoryLink) hash(s repository.Secret) string {
	mac := hmac.New(sha256.New, []byte(l.Salt+s.Name))
	mac.Write([]byte(s.Value))

	return hex.EncodeToString(mac.Sum(nil))
}

const lockInterval = 200 * time.Millisecond

// lockRepository waits for other pushes of a folder on this machine, and keeps them waiting until
// the returned function runs. It calls busy before it waits: another push may ask a question that
// nobody answers.
func (e environment) lockRepository(ctx context.Context, folder string, busy func()) (unlock func(), err error) {
	name, err := e.linksFile()
	if err != nil {
		return nil, err
	}

	sum := sha256.Sum256([]byte(folder))
	name = filepath.Join(dirOf(name), "push-"+hex.EncodeToString(sum[:8])+".lock")
	if err := os.MkdirAll(dirOf(name), 0o700); err != nil {
		return nil, err
	}

	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}

	for waits := false; ; waits = true {
		ok, err := tryLockFile(f)
		switch {
		case ok:
			return func() { _ = f.Close() }, nil // which releases the lock
		case err != nil:
			return nil, errors.Join(err, f.Close())
		case !waits:
			busy()
		}

		if tick.Pause(ctx, lockInterval) != nil {
			return nil, errors.Join(errCanceled, f.Close())
		}
	}
}
