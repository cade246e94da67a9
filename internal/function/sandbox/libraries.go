package sandbox

import (
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Paths inside.
const (
	programPath   = "/program"
	libraryFolder = "/lib"
)

// maxLibraries bounds the libraries of a program.
const maxLibraries = 32

// libraryFolders are the folders outside in which glibc's loader looks, but for its cache.
var libraryFolders = []string{
	"/lib64", "/usr/lib64", "/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib/aarch64-linux-gnu",
	"/usr/lib/aarch64-linux-gnu", "/lib", "/usr/lib",
}

// bind is a file outside, shown inside.
type bind struct{ Source, Target string }

// resolveLibraries returns the program with its loader and libraries. It fails with fs.ErrNotExist
// if one is missing.
func resolveLibraries(program string) ([]bind, error) {
	loader, libraries, err := readNeeded(program)
	if err != nil {
		return nil, err
	}

	binds := []bind{{program, programPath}}
	if loader != "" {
		binds = append(binds, bind{loader, loader})
	}

	known := map[string]bool{filepath.Base(loader): true}
	for len(libraries) > 0 {
		name := libraries[0]
		libraries = libraries[1:]
		if known[name] {
			continue
		}
		if known[name] = true; len(known) > maxLibraries || filepath.Base(name) != name {
			return nil, fmt.Errorf("library %q of %s: too many, or with a path", name, program)
		}

		path, err := findLibrary(name)
		if err != nil {
			return nil, err
		}

		binds = append(binds, bind{path, filepath.Join(libraryFolder, name)})

		_, more, err := readNeeded(path)
		if err != nil {
			return nil, err
		}

		libraries = append(libraries, more...)
	}

	return binds, nil
}

// readNeeded returns the loader that a program names, and the libraries that it or a library needs.
func readNeeded(path string) (loader string, needed []string, err error) {
	file, err := elf.Open(path)
	if err != nil {
		return "", nil, fmt.Errorf("read %s: %w", path, err)
	}
	defer file.Close()

	for _, p := range file.Progs {
		if p.Type != elf.PT_INTERP || p.Filesz < 2 || p.Filesz > 256 {
			continue
		}

		name := make([]byte, p.Filesz-1) // without the final null character
		if _, err := p.ReadAt(name, 0); err != nil {
			return "", nil, fmt.Errorf("read the loader of %s: %w", path, err)
		}

		loader = string(name)
	}

	needed, err = file.ImportedLibraries()
	if err != nil && !errors.Is(err, elf.ErrNoSymbols) {
		return "", nil, fmt.Errorf("read the libraries of %s: %w", path, err)
	}

	return loader, needed, nil
}

func findLibrary(name string) (string, error) {
	for _, folder := range libraryFolders {
		path := filepath.Join(folder, name)
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}

	return "", fmt.Errorf("library %s: %w", name, fs.ErrNotExist)
}
