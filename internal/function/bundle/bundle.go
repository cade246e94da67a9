// Package bundle makes one module of an edge function's files, on the machine of its developer,
// with the Deno that it finds or installs there.
//
// The server never resolves an import: it gets one module, in which everything is that the function
// needs, with the source map as its last line. The same files make the same bytes on every machine,
// so the sum of a bundle tells whether a project has it.
//
//	files ─► deno info: all modules lie in the repository ─► deno bundle: so do all files in it
//	─► portable paths, source map, static files ─► bundle
//
// Nothing of a function runs meanwhile, nor do the scripts of its packages. Which functions a
// repository has is up to package repository.
package bundle

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/socle-dev/socle/internal/repository"
)

const (
	// MaxSize bounds a bundle in bytes, with its source map. The server has the same limit.
	MaxSize = 20 << 20

	timeout     = 5 * time.Minute // for a function, with its downloads
	maxProblems = 20              // files outside the repository that a failure names
)

// hosts are the hosts that modules are imported from, beside registries.
var hosts = []string{"deno.land", "jsr.io", "npm.jsr.io", "esm.sh", "raw.esm.sh", "esm.run", "cdn.skypack.dev",
	"cdn.jsdelivr.net", "unpkg.com", "raw.githubusercontent.com", "gist.githubusercontent.com"}

// Bundler bundles functions of a repository. It is safe for concurrent use.
type Bundler struct {
	Program string   // path of Deno
	Root    string   // folder of the repository
	Environ []string // as [os.Environ] returns it
	Hosts   []string // further hosts that modules may be imported from

	once  sync.Once
	root  string // without symbolic links
	cache string // folder of npm's packages in Deno's cache
	err   error

	first      sync.Mutex // held until a bundle is made
	isComplete bool       // Deno has its bundler; under first
}

// Bundle is a function as the server takes it.
type Bundle struct{ Code []byte }

// Version returns the name of the bundle as a version: its SHA-256, in hexadecimal.
func (b Bundle) Version() string {
	sum := sha256.Sum256(b.Code)
	return hex.EncodeToString(sum[:])
}

// Bundle bundles a function. It fails with [repository.Problems] if something in its files is
// wrong.
func (b *Bundler) Bundle(ctx context.Context, f repository.Function) (Bundle, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()

	if b.once.Do(func() { b.err = b.prepare(ctx) }); b.err != nil {
		return Bundle{}, b.err
	}

	out, err := os.MkdirTemp("", "socle-bundle-")
	if err != nil {
		return Bundle{}, err
	}
	defer os.RemoveAll(out)

	if out, err = filepath.EvalSymlinks(out); err != nil { // as Deno sees it
		return Bundle{}, err
	}

	options, err := b.options(f, out)
	if err != nil {
		return Bundle{}, err
	}
	if err := b.checkModules(ctx, f, options); err != nil {
		return Bundle{}, err
	}

	file := filepath.Join(out, "index.js")
	args := append([]string{"bundle", "--quiet", "--platform=deno", "--sourcemap=external",
		"--output=" + file}, options...)
	if err := b.runBundle(ctx, f, append(args, f.Entry)); err != nil {
		return Bundle{}, err
	}

	code, err := os.ReadFile(file)
	if err != nil {
		return Bundle{}, err
	}
	if err := b.checkBundle(f, code); err != nil {
		return Bundle{}, err
	}

	return b.assemble(f, code, file)
}

// prepare finds the folders whose paths bundles must not have.
func (b *Bundler) prepare(ctx context.Context) error {
	root, err := filepath.Abs(b.Root)
	if err == nil {
		b.root, err = filepath.EvalSymlinks(root)
	}
	if err != nil {
		return err
	}

	text, err := b.run(ctx, repository.Function{}, "info", "--json", "--no-config")
	if err != nil {
		return err
	}

	var info struct{ NPMCache string }
	if err := json.Unmarshal(text, &info); err != nil {
		return fmt.Errorf("read what Deno says of its cache: %w", err)
	}

	b.cache = info.NPMCache
	return nil
}

// options returns the options of Deno by which it resolves a function's imports. Its lock file is
// used, and never written.
func (b *Bundler) options(f repository.Function, temporary string) ([]string, error) {
	all := []string{"--node-modules-dir=none", "--allow-import=" + strings.Join(append(b.Hosts, hosts...), ",")}
	if f.ImportMap != "" {
		all = append(all, "--import-map="+f.ImportMap)
	}
	if f.Config == "" {
		return append(all, "--no-config", "--no-lock"), nil
	}

	all = append(all, "--config="+f.Config)
	lock, err := os.ReadFile(filepath.Join(b.root, filepath.FromSlash(path.Dir(f.Config)), "deno.lock"))
	if err != nil {
		return append(all, "--no-lock"), nil
	}

	name := filepath.Join(temporary, "deno.lock")
	return append(all, "--lock="+name), os.WriteFile(name, lock, 0o600)
}

// run runs Deno in the repository and returns its output.
func (b *Bundler) run(ctx context.Context, f repository.Function, args ...string) ([]byte, error) {
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, b.Program, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = b.root, &out, &errs
	cmd.WaitDelay = time.Second
	cmd.Env = Environ(b.Environ)
	if !b.hasManifest(f) {
		cmd.Env = append(cmd.Env, "DENO_NO_PACKAGE_JSON=1") // the application's is not the function's
	}

	err := cmd.Run()
	if _, ok := errors.AsType[*exec.ExitError](err); ok && ctx.Err() == nil {
		return nil, b.failure(f, errs.String())
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return nil, fmt.Errorf("%s: the bundle took longer than %v", f.Entry, timeout)
	}

	return out.Bytes(), errors.Join(err, ctx.Err())
}

// runBundle runs deno bundle. The first run is alone: it downloads Deno's bundler, which fails if
// two do so at once.
func (b *Bundler) runBundle(ctx context.Context, f repository.Function, args []string) error {
	b.first.Lock()
	if b.isComplete {
		b.first.Unlock()
		_, err := b.run(ctx, f, args...)
		return err
	}
	defer b.first.Unlock()

	_, err := b.run(ctx, f, args...)
	b.isComplete = err == nil
	return err
}

// hasManifest reports whether a function has a package.json of its own.
func (b *Bundler) hasManifest(f repository.Function) bool {
	_, err := os.Stat(filepath.Join(b.root, filepath.FromSlash(path.Dir(f.Entry)), "package.json"))
	return f.Entry != "" && err == nil
}

// assemble makes the bundle of the code and the source map that Deno wrote.
func (b *Bundler) assemble(f repository.Function, code []byte, file string) (Bundle, error) {
	text, err := os.ReadFile(file + ".map")
	if err != nil {
		return Bundle{}, err
	}

	prelude, err := b.prelude(f)
	if err != nil {
		return Bundle{}, err
	}

	m, err := b.sourceMap(text, filepath.Dir(file), bytes.Count(prelude, []byte("\n")))
	if err != nil {
		return Bundle{}, err
	}

	code = append(append(prelude, b.portable(code)...), m...)
	if len(code) > MaxSize {
		return Bundle{}, repository.Problems{{File: f.Entry, Text: fmt.Sprintf(
			"makes a bundle of %.1f MiB with its source map and static files; the limit is %d MiB",
			float64(len(code))/(1<<20), MaxSize>>20)}}
	}

	return Bundle{code}, nil
}
