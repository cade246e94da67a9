package laws

import (
	"go/ast"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// returnsSubject reports whether a declaration is a function that returns a projectdb.Subject.
func returnsSubject(d ast.Decl) bool {
	f, ok := d.(*ast.FuncDecl)
	if !ok || f.Type.Results == nil {
		return false
	}

	return slices.ContainsFunc(f.Type.Results.List, func(result *ast.Field) bool {
		name, ok := result.Type.(*ast.SelectorExpr)
		return ok && name.Sel.Name == "Subject"
	})
}

// subjects returns the import paths of the packages that return a projectdb.Subject.
func subjects(t *testing.T) []string {
	t.Helper()

	parsed := syntax(t)
	var paths []string
	for _, p := range tree(t) {
		for _, name := range p.GoFiles {
			if slices.ContainsFunc(parsed.of[filepath.Join(p.Dir, name)].Decls, returnsSubject) {
				paths = append(paths, p.ImportPath)
			}
		}
	}

	return paths
}

// writtenByBackups is the subject that backups write facts about themselves to.
const writtenByBackups = "internal/event"

// TestBackupImportsNoSubject checks that backups know the rows of a subject by its Subject only, so
// that a new subject is no change of package backup; and that package server passes on each one.
func TestBackupImportsNoSubject(t *testing.T) {
	t.Parallel()

	registered := tree(t)["internal/server"].Imports
	for _, subject := range subjects(t) {
		if !slices.Contains(registered, subject) {
			t.Errorf("internal/server does not import the subject %s", subject)
		}

		for name, p := range tree(t) {
			inBackup := name == "internal/backup" || strings.HasPrefix(name, "internal/backup/")
			if inBackup && subject != modulePath(t)+"/"+writtenByBackups && slices.Contains(p.Imports, subject) {
				t.Errorf("%s imports %s: give what it needs by projectdb.Subject", name, subject)
			}
		}
	}
}

// TestSubjectsAreFound checks that the law above has subjects to look at.
func TestSubjectsAreFound(t *testing.T) {
	t.Parallel()

	found := subjects(t)
	for _, name := range []string{"object", "form", "enduser", "webhook", "function"} {
		if !slices.Contains(found, modulePath(t)+"/internal/"+name) {
			t.Errorf("%s is no subject, of %q", name, found)
		}
	}
}
