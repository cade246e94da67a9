package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/socle-dev/socle/internal/backup/archive"
	"github.com/socle-dev/socle/internal/backup/pgtool"
	"github.com/socle-dev/socle/internal/blob"
	"github.com/socle-dev/socle/internal/pgdump"
	"github.com/socle-dev/socle/internal/projectdb"
)

// compressionFlag takes half the time of pg_dump's default for a dump that is some percent larger.
// Most of a backup's time is compression.
const compressionFlag = "--compress=3"

// dumpTimeZone is the time zone for times in a dump. It is fixed, so that restored rows compare
// equal under any server settings and environment.
const dumpTimeZone = "UTC"

// dump streams a database dump into the storage. It returns the stored object and the unencrypted
// dump's size and checksum.
func (s *Service) dump(ctx context.Context, b Backup, snapshot string, lockTimeout time.Duration) (
	object blob.Object, plain archive.Digest, err error,
) {
	address, password := s.projects.Open(b.ProjectUUID).DumpURL()
	to := pgtool.Connection{Address: address, Password: password}
	cmd, closeFiles, err := s.tools.Command(ctx, to, "pg_dump", "--format=custom", compressionFlag,
		"--encoding=UTF8", "--exclude-table-data="+projectdb.Schema+"."+projectdb.OpenedVaultKeys,
		"--exclude-table-data="+projectdb.Schema+".events*", "--exclude-table-data="+projectdb.Schema+".captures",
		"--exclude-table-data="+projectdb.Schema+".webhook_states",
		"--exclude-table-data="+projectdb.Schema+".webhook_deliveries",
		fmt.Sprintf("--lock-wait-timeout=%d", lockTimeout.Milliseconds()), "--snapshot="+snapshot)
	if err != nil {
		return object, plain, err
	}
	defer closeFiles()

	cmd.Env = append(cmd.Env, "PGTZ="+dumpTimeZone)

	sum := archive.NewHasher()
	err = s.tools.RunStrict(cmd, func(out io.Reader) error {
		encrypter := s.encryptionKey().Encrypt(io.TeeReader(out, sum))
		defer encrypter.Close()

		object, err = s.blobs.Put(ctx, DumpKey(b.ProjectUUID, b.UUID), encrypter, math.MaxInt64)
		return err
	})

	return object, sum.Digest(), err
}

// verifyDump reads a dump to its end and verifies its size and checksum against the manifest. It
// returns the table of contents, and fails unless pg_restore can read that too.
func (s *Service) verifyDump(ctx context.Context, manifest archive.Manifest) ([]pgdump.Entry, error) {
	name := DumpKey(manifest.Project, manifest.Backup)
	var entries []pgdump.Entry
	sum := archive.NewHasher()

	err := s.readPart(ctx, name, func(r io.Reader) error {
		r = io.TeeReader(r, sum)
		var err error
		if entries, err = pgdump.ReadTOC(r); err != nil && !errors.Is(err, pgdump.ErrTOC) {
			return err
		}

		_, rest := io.Copy(io.Discard, r)
		return errors.Join(err, rest)
	})
	if err == nil && sum.Digest() != manifest.Dump {
		err = fmt.Errorf("%w: the dump has %v, invalid content in the manifest: %v", archive.ErrDamaged, sum.Digest(),
			manifest.Dump)
	}
	if err != nil {
		return nil, err
	}

	return entries, s.readPart(ctx, name, func(r io.Reader) error {
		cmd, closeFiles, err := s.tools.Command(ctx, pgtool.Connection{}, "pg_restore", "--list")
		if err != nil {
			return err
		}
		defer closeFiles()

		cmd.Stdin = r
		return s.tools.RunStrict(cmd, func(out io.Reader) error {
			n, err := io.Copy(io.Discard, out)
			if err == nil && n == 0 {
				err = errors.New("the dump has no table of contents")
			}

			return err
		})
	})
}
