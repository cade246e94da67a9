package archive

import (
	"io"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/backup/extension"
	"github.com/socle-dev/socle/internal/pgcluster"
	"github.com/socle-dev/socle/internal/projectdb"
)

// formats are manifests as releases have written them, with every member of their format. They stay
// as they are: backups like these are stored.
var formats = map[string]string{
	"1": `{"format":1,"socle":"v0.1.0","project":"01912b8c-0000-7000-8000-00000000abcd","backup":"01912b8c-0000-7000-8000-000000000001",` +
		`"schema":12,"postgresql":150018,"at":"2026-01-01T00:00:00.0000005Z",` +
		`"dump":{"size":6,"sha256":"ec0836540d7066a2b80056c56b74878dd942e8bf826f1b27b8a35a3d7c2b3e2f"},"files":[],` +
		`"tables":[{"schema":"public","name":"orders","rows":7}]}`,
	"1, with a multirange type": `{"format":1,"socle":"v0.1.0","project":"01912b8c-0000-7000-8000-00000000abcd","backup":"01912b8c-0000-7000-8000-000000000001",` +
		`"schema":12,"postgresql":160004,"at":"2026-01-01T00:00:00Z","timeZone":"UTC",` +
		`"dump":{"size":6,"sha256":"ec0836540d7066a2b80056c56b74878dd942e8bf826f1b27b8a35a3d7c2b3e2f"},"files":[],"tables":[],` +
		`"extended":{"tables":[],"rights":[{"kind":"type","identity":"public.days","grants":[{"role":"","privilege":"USAGE","grantable":false}]}]}}`,
	"2": `{"format":2,"socle":"v0.1.0","project":"01912b8c-0000-7000-8000-00000000abcd","backup":"01912b8c-0000-7000-8000-000000000001",` +
		`"source":"01912b8c-0000-7000-8000-00000000dcba",` +
		`"schema":20,"postgresql":150018,"at":"2026-01-01T00:00:00Z","timeZone":"UTC",` +
		`"dump":{"size":6,"sha256":"ec0836540d7066a2b80056c56b74878dd942e8bf826f1b27b8a35a3d7c2b3e2f"},` +
		`"files":[{"size":5,"sha256":"2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"}],"tables":[],` +
		`"extensions":[{"name":"postgis","schema":"extensions"}],` +
		`"extended":{"tables":[{"schema":"extensions","name":"spatial_ref_sys","owned":true,"rowSecurity":true,"forced":true,` +
		`"policies":[{"name":"p","permissive":true,"command":"r","roles":["","anon"],"using":"true","check":""}]}],` +
		`"rights":[{"kind":"table","identity":"extensions.spatial_ref_sys","grants":[{"role":"anon","privilege":"SELECT","grantable":true}]}]}}`,
	"3": `{"format":3,"socle":"v0.1.0","project":"01912b8c-0000-7000-8000-00000000abcd","backup":"01912b8c-0000-7000-8000-000000000001",` +
		`"database":"socle_0123456789abcdef0123456789abcdef",` +
		`"schema":33,"postgresql":150018,"at":"2026-01-01T00:00:00Z","timeZone":"UTC",` +
		`"dump":{"size":6,"sha256":"ec0836540d7066a2b80056c56b74878dd942e8bf826f1b27b8a35a3d7c2b3e2f"},"files":[],"tables":[]}`,
}

// TestFormats reads a manifest of each format and writes it again, byte for byte.
func TestFormats(t *testing.T) {
	t.Parallel()

	for name, want := range formats {
		m, err := ReadManifest(strings.NewReader(want))
		if err != nil {
			t.Errorf("format %s: %v", name, err)
			continue
		}
		defer m.Files.Close()

		if err := m.validate(); err != nil {
			t.Errorf("format %s: %v", name, err)
		}

		text := m.JSON()
		defer text.Close()

		if got, err := io.ReadAll(text); string(got) != want || err != nil {
			t.Errorf("format %s: got %v\n%s, want\n%s", name, err, got, want)
		}
	}
}

// TestWithFormat chooses the oldest format for a backup.
func TestWithFormat(t *testing.T) {
	t.Parallel()

	const other = "socle_0123456789abcdef0123456789abcdef"
	derived := pgcluster.Names{}.Database(testProject)
	extensions := []projectdb.Extension{{Name: "postgis", Schema: "extensions"}}
	unchanged := &extension.Changes{Tables: []extension.Table{}}
	changed := &extension.Changes{Rights: []extension.Object{{Kind: "type", Identity: "public.days"}}}

	for name, c := range map[string]struct {
		manifest Manifest
		format   int
		database string
		extended *extension.Changes
	}{
		"nothing":           {Manifest{Database: derived}, firstFormat, "", nil},
		"no changes":        {Manifest{Database: derived, Extended: unchanged}, firstFormat, "", nil},
		"a multirange type": {Manifest{Database: derived, Extended: changed}, firstFormat, "", changed},
		"extensions": {
			Manifest{Database: derived, Extensions: extensions, Extended: unchanged}, extensionsFormat, "", unchanged,
		},
		"imported":     {Manifest{Source: testSource}, extensionsFormat, "", nil},
		"another name": {Manifest{Database: other}, Format, other, nil},
		"another name, extensions": {
			Manifest{Database: other, Extensions: extensions, Extended: unchanged}, Format, other, unchanged,
		},
		"a newer format than needs": {Manifest{Format: Format}, firstFormat, "", nil},
	} {
		c.manifest.Project = testProject
		got := c.manifest.WithFormat()

		if got.Format != c.format || got.Database != c.database || got.Extended != c.extended {
			t.Errorf("%s: got format %d, database %q, changes %v, want %d, %q, %v",
				name, got.Format, got.Database, got.Extended, c.format, c.database, c.extended)
		}
	}
}

// TestImportManifest imports a backup, also one that was imported before.
func TestImportManifest(t *testing.T) {
	t.Parallel()

	into, id := uuid.New(), uuid.New()
	for format, want := range map[int]int{1: 2, 2: 2, 3: 3} {
		m := Manifest{Format: format, Project: testProject}.Import(into, id)
		if m.Project != into || m.Backup != id || m.Origin() != testProject || !m.Imported() || m.Format != want {
			t.Errorf("format %d: got %+v", format, m)
		}

		m = m.export().Import(testSource, id)
		if m.Project != testSource || m.Origin() != testProject || m.Format != want {
			t.Errorf("format %d, again: got %+v", format, m)
		}
	}
}
