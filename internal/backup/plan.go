package backup

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/socle-dev/socle/internal/backup/archive"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/namespace"
	"github.com/socle-dev/socle/internal/pgcluster"
	"github.com/socle-dev/socle/internal/pgdump"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/schema"
)

// restorePlan divides a dump's entries by the login that restores them. Data and statements beside
// the platform's are restored as the owner, never as a stronger login.
type restorePlan struct {
	platform   []pgdump.Entry // platform table data
	user       []pgdump.Entry // restored as the owner
	statements []pgdump.Entry // executed afterwards as the owner: privileges, and policies that name the owner
}

// planRestore classifies a dump's entries. to is the target project's owner login. It fails with
// Unprocessable if the dump has an object that projects cannot have. Extensions in the manifest are
// created beforehand.
func planRestore(entries []pgdump.Entry, manifest archive.Manifest, to string) (restorePlan, error) {
	var p restorePlan
	from := pgcluster.OwnerLoginOf(manifest.DatabaseName())
	inManifest := func(match func(projectdb.Extension) bool) bool {
		return slices.ContainsFunc(manifest.Extensions, match)
	}
	for _, e := range entries {
		kind, name, _ := strings.Cut(e.Tag, " ")
		switch {
		case e.Desc == "EXTENSION" && inManifest(func(x projectdb.Extension) bool { return x.Name == e.Tag }):
		case e.Desc == "SCHEMA" && inManifest(func(x projectdb.Extension) bool { return x.Schema == e.Tag }):
		case slices.Contains([]string{
			"ENCODING", "STDSTRINGS", "SEARCHPATH", "DATABASE", "DATABASE PROPERTIES",
		}, e.Desc):
		case projectdb.IsServiceObject(e.Desc, e.Namespace, e.Tag, e.Owner, from):
			if e.Desc == "TABLE DATA" {
				p.platform = append(p.platform, e)
			}
		case slices.Contains(namespace.Platform, e.Namespace) && !projectdb.IsUserObject(e.Desc, e.Namespace, e.Tag):
			if e.Desc == "TABLE DATA" && !projectdb.IsPolicyTable(e.Namespace, e.Tag) &&
				!(e.Namespace == projectdb.Schema && slices.Contains(projectdb.BookkeepingTables, e.Tag)) {
				p.platform = append(p.platform, e)
			}
		case e.Namespace == schema.ExtensionsSchema && e.Owner != from &&
			inManifest(func(x projectdb.Extension) bool { return schema.IsEmulated(x.Name) }): // created beforehand
		case e.Desc == "SCHEMA" && (e.Tag == "public" || slices.Contains(namespace.Platform, e.Tag)):
		case e.Desc == "EVENT TRIGGER" && strings.HasPrefix(e.Tag, "socle_"):
		case e.Namespace == "pg_catalog", e.Desc == "COMMENT" && kind == "EXTENSION",
			e.Desc == "COMMENT" && kind == "SCHEMA" && slices.Contains(namespace.Platform, name):
		case slices.Contains([]string{
			"EVENT TRIGGER", "EXTENSION", "SUBSCRIPTION", "PROCEDURAL LANGUAGE", "FOREIGN DATA WRAPPER", "TRANSFORM",
		}, e.Desc):
			return p, fault.New(fault.Unprocessable, "the backup contains an object that a project cannot have: %s %s",
				strings.ToLower(e.Desc), e.Tag)
		case e.Desc == "ACL" && e.Namespace == "" && (kind != "SCHEMA" || slices.Contains(namespace.Platform, name)):
		case e.Desc == "DEFAULT ACL" && e.Owner != from:
		case e.Desc == "ACL", e.Desc == "DEFAULT ACL",
			e.Desc == "POLICY" && from != to && strings.Contains(e.Definition, from):
			e.Definition = strings.ReplaceAll(e.Definition, from, to)
			p.statements = append(p.statements, e)
		default:
			p.user = append(p.user, e)
		}
	}

	return p, nil
}

// excludeExtensionTables removes the entries for extension tables, which belong to the platform:
// the manifest describes their state.
func (p *restorePlan) excludeExtensionTables(members []projectdb.ExtensionMember) {
	p.user = slices.DeleteFunc(p.user, func(e pgdump.Entry) bool {
		return slices.ContainsFunc(members, func(m projectdb.ExtensionMember) bool {
			return e.Namespace == m.Schema &&
				((e.Desc == "ROW SECURITY" && e.Tag == m.Name) ||
					(e.Desc == "POLICY" && strings.HasPrefix(e.Tag, m.Name+" ")))
		})
	})
}

// useList formats entries for pg_restore --use-list.
func useList(entries []pgdump.Entry) string {
	var text strings.Builder
	for _, e := range entries {
		fmt.Fprintf(&text, "%d;\n", e.ID)
	}

	return text.String()
}

// checkRestorable fails with Unprocessable if this install cannot restore the backup that a
// manifest describes.
func (s *Service) checkRestorable(ctx context.Context, manifest archive.Manifest) error {
	if manifest.Schema > projectdb.Version() {
		return archive.ErrNewer
	}

	server, err := pgcluster.ServerVersion(ctx, s.q)
	if err != nil {
		return err
	}

	if major := manifest.PostgreSQL / 10000; major > server/10000 {
		return fault.New(fault.Unprocessable,
			"the backup requires PostgreSQL %d or newer, and this server is PostgreSQL %d", major,
			server/10000).WithCode("newer_postgresql")
	}

	return s.Lifecycle.CheckExtensions(ctx, s.q, manifest.Project, manifest.Extensions, manifest.Imported())
}
