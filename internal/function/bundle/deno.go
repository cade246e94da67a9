package bundle

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	goruntime "runtime"
	"strings"

	"github.com/socle-dev/socle/internal/function/runtime"
)

// ErrNoDeno reports that this machine has no Deno.
var ErrNoDeno = errors.New("Deno, which bundles edge functions, is not installed: socle functions install")

const (
	registry    = "https://registry.npmjs.org"
	maxArchive  = 256 << 20 // bytes
	maxProgram  = 512 << 20
	versionFile = "version"
)

// Find returns the path of Deno: in one of the folders, or on the path of programs. It fails with
// [ErrNoDeno].
func Find(folders ...string) (string, error) {
	if program := runtime.Find(folders...); program != "" {
		return program, nil
	}

	program, err := exec.LookPath("deno")
	if err != nil {
		return "", ErrNoDeno
	}

	return filepath.Abs(program)
}

// kept matches the variables that Deno needs or heeds. It gets no others, since an .npmrc of the
// repository could send them elsewhere. Tokens of registries stand in the developer's own .npmrc.
var kept = regexp.MustCompile(`(?i)^(PATH|HOME|USERPROFILE|(LOCAL)?APPDATA|SYSTEMROOT|TMPDIR|TE?MP|XDG_\w+|` +
	`DENO_(DIR|CERT|TLS_CA_STORE)|NPM_CONFIG_REGISTRY|SSL_CERT_\w+|NODE_EXTRA_CA_CERTS|(HTTPS?|ALL|NO)_PROXY)=`)

// Environ returns the environment of Deno, given that of a command.
func Environ(environ []string) []string {
	var all []string
	for _, variable := range environ {
		if kept.MatchString(variable) {
			all = append(all, variable)
		}
	}

	return append(all, "NO_COLOR=1", "DENO_NO_UPDATE_CHECK=1")
}

// Install puts the release of Deno that functions run by into a folder, unless it is there. from is
// the address of a registry or the path of the release's archive; "": npm's registry. It returns
// the path of the program, and whether it was there.
func Install(ctx context.Context, folder, from string) (program string, was bool, err error) {
	release, ok := runtime.CurrentRelease()
	if !ok {
		return "", false, fmt.Errorf("there is no Deno for %s on %s", goruntime.GOOS, goruntime.GOARCH)
	}

	program = filepath.Join(folder, runtime.ProgramName())
	version, err := os.ReadFile(filepath.Join(folder, versionFile))
	if err == nil && strings.TrimSpace(string(version)) == release.Version {
		if info, err := os.Stat(program); err == nil && info.Mode().IsRegular() {
			return program, true, nil
		}
	}

	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", false, err
	}

	archive, err := os.CreateTemp(folder, "archive-")
	if err != nil {
		return "", false, err
	}
	defer os.Remove(archive.Name())
	defer archive.Close()

	if err := fetch(ctx, archive, release, from); err != nil {
		return "", false, err
	}
	if err := unpack(archive, program); err != nil {
		return "", false, fmt.Errorf("unpack Deno: %w", err)
	}

	return program, false, os.WriteFile(filepath.Join(folder, versionFile), []byte(release.Version+"\n"), 0o644)
}

// fetch copies the archive of a release to a file, and fails unless it has the sum of the release.
func fetch(ctx context.Context, to *os.File, release runtime.Release, from string) error {
	body, err := open(ctx, release, from)
	if err != nil {
		return err
	}
	defer body.Close()

	sum := sha512.New()
	n, err := io.Copy(io.MultiWriter(to, sum), io.LimitReader(body, maxArchive))
	if err != nil {
		return fmt.Errorf("fetch Deno: %w", err)
	}
	if actual := "sha512-" + base64.StdEncoding.EncodeToString(sum.Sum(nil)); actual != release.Sum {
		return fmt.Errorf("the archive is not that of Deno %s: its %d bytes have the sum %s, want %s", release.Version, n,
			actual, release.Sum)
	}

	_, err = to.Seek(0, io.SeekStart)
	return err
}

// open opens the archive of a release: a file, or that of a registry.
func open(ctx context.Context, release runtime.Release, from string) (io.ReadCloser, error) {
	if from == "" {
		from = registry
	}
	if !strings.HasPrefix(from, "https://") && !strings.HasPrefix(from, "http://") {
		return os.Open(from)
	}

	_, name, _ := strings.Cut(release.Package, "/")
	address := fmt.Sprintf("%s/%s/-/%s-%s.tgz", strings.TrimSuffix(from, "/"), release.Package, name, release.Version)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}

	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, fmt.Errorf("fetch Deno: %w", err)
	}
	if res.StatusCode != http.StatusOK {
		return nil, errors.Join(fmt.Errorf("fetch Deno: %s answers %s", address, res.Status), res.Body.Close())
	}

	return res.Body, nil
}

// unpack writes the program in an archive. A program that runs is replaced whole.
func unpack(archive io.Reader, program string) error {
	plain, err := gzip.NewReader(archive)
	if err != nil {
		return err
	}

	files := tar.NewReader(plain)
	for {
		header, err := files.Next()
		if err != nil {
			return err
		}
		if header.Name == "package/"+filepath.Base(program) && header.Typeflag == tar.TypeReg {
			return replace(program, io.LimitReader(files, maxProgram))
		}
	}
}

// replace writes a program beside the one that it replaces.
func replace(program string, content io.Reader) error {
	f, err := os.CreateTemp(filepath.Dir(program), "program-")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())

	_, err = io.Copy(f, content)
	if err := errors.Join(err, f.Chmod(0o755), f.Close()); err != nil {
		return err
	}

	return os.Rename(f.Name(), program)
}
