package repository

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"

	"github.com/socle-dev/socle/internal/sqllex"
)

// Seed is a file with rows for a new database.
type Seed struct {
	Path string // from the repository's folder, with slashes
	Size int64  // bytes
	Hash string // SHA-256 over the text with Unix line ends
}

// defaultSeed is the file that runs if the configuration names none.
const defaultSeed = "./seed.sql"

// readSeeds finds the files that match the configuration's patterns, each pattern's in name order.
func (r *Repository) readSeeds(d *document, files *os.Root) {
	s := d.section("db", "seed")
	patterns, ok := s.texts("sql_paths")
	if !ok {
		patterns = []string{defaultSeed}
	}
	if enabled, ok := s.flag("enabled"); ok && !enabled {
		return
	}

	for _, pattern := range patterns {
		names, err := fs.Glob(files.FS(), path.Join(Folder, pattern))
		if err != nil || (len(names) == 0 && pattern != defaultSeed) {
			d.note(s.key("sql_paths"), "names no file in the repository: %s", pattern)
		}

		for _, name := range names {
			if slices.ContainsFunc(r.Seeds, func(s Seed) bool { return s.Path == name }) {
				continue
			}

			seed, err := readSeed(files, name)
			switch {
			case err != nil && ok:
				d.problem(s.key("sql_paths"), "names %s, which is no file that can be read", name)
				continue
			case err != nil:
				d.problems = append(d.problems, Remark{File: name, Text: "can't be read"})
				continue
			}

			r.Seeds = append(r.Seeds, seed)
		}
	}
}

func readSeed(files *os.Root, name string) (Seed, error) {
	f, info, err := openRegular(files, name)
	if err != nil {
		return Seed{}, err
	}
	defer f.Close()

	sum := sha256.New()
	if _, err := io.Copy(unixLines{sum}, f); err != nil {
		return Seed{}, err
	}

	return Seed{Path: name, Size: info.Size(), Hash: hex.EncodeToString(sum.Sum(nil))}, nil
}

// unixLines writes a text without carriage returns, which a checkout on Windows adds.
type unixLines struct{ to io.Writer }

func (w unixLines) Write(b []byte) (int, error) {
	if _, err := w.to.Write(bytes.ReplaceAll(b, []byte("\r"), nil)); err != nil {
		return 0, err
	}
	return len(b), nil
}

// Statements on the seeds that a project has run. The table is Supabase's tool's.
const (
	SelectSeeds = "select path, hash from supabase_migrations.seed_files"

	// PrepareSeeds must run in one transaction. It locks, since "if not exists" fails in one of two
	// transactions that create the same at once.
	PrepareSeeds = "select pg_advisory_xact_lock(hashtext('supabase_migrations.seed_files'));\n" +
		"create schema if not exists supabase_migrations;\n" +
		"create table if not exists supabase_migrations.seed_files (path text primary key, hash text not null)"
)

// Record returns the statement that records a seed. It fails in a project that has run the seed, so
// it makes of two runs at once one, if it stands in their transaction.
func (s Seed) Record() string {
	return fmt.Sprintf("insert into supabase_migrations.seed_files (path, hash) values (%s, %s)",
		sqllex.Literal(s.Path), sqllex.Literal(s.Hash))
}
