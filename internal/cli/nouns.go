package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// groups are the sections of socle's help, in order.
var groups = []*cobra.Group{
	{ID: groupStart, Title: "Start:"},
	{ID: groupRepository, Title: "Repository of an application:"},
	{ID: "database", Title: "Database:"},
	{ID: "files", Title: "Files and forms:"},
	{ID: "people", Title: "People and access:"},
	{ID: "operations", Title: "Operations:"},
	{ID: groupServer, Title: "On the server's machine:"},
}

const (
	groupStart      = "start"
	groupRepository = "repository"
	groupServer     = "server"
)

// noun is a command that groups operations.
type noun struct{ name, group, short, example string }

var nouns = []noun{
	{"projects", groupStart, "Projects, each with a database of its own", "socle projects create --name Newspaper"},
	{"account", groupStart, "Your own user account", "socle account get"},
	{"functions", groupStart, "Edge functions: write, try, deploy, roll back, their secrets and log",
		"socle functions new hello\n  socle functions deploy hello\n  socle functions logs hello --follow"},

	{"tables", "database", "Tables: change, import, export, compact",
		"socle tables create --name books --column 'id bigint primary key' --column 'title text not null'"},
	{"columns", "database", "Columns of a table", "socle columns create books --name title --type text --not-null"},
	{"rows", "database", "Rows of a table: read, change, import", "socle rows list books title=like.A* --limit 10"},
	{"sql", "database", "Run SQL, or type it in a shell", "socle sql run schema.sql --read-only=false"},
	{"saved-queries", "database", "SQL that the developers of a project share",
		"socle saved-queries create --name 'cheap books' --query 'select title from books where price < 10'"},
	{"db", "database", "PostgreSQL's own protocol: psql, a proxy for other programs, import and dump",
		"socle db import library.sql\n  socle db dump library.sql\n  socle db psql"},
	{"database-credentials", "database", "User names and passwords for PostgreSQL clients",
		"socle database-credentials create --name metabase --access read_only"},
	{"schedules", "database", "Work by the clock: SQL or calls of endpoints",
		"socle schedules create --name nightly --cron '0 3 * * *' --command 'delete from carts'"},
	{"migrations", "database", "Migrations of the schema: write, apply, compare", "socle migrations up"},
	{"constraints", "database", "Constraints of a table",
		"socle constraints create books --type foreign --columns author --reference-table authors"},
	{"indexes", "database", "Indexes of a table", "socle indexes create books --columns title"},
	{"enums", "database", "Enums and their values",
		"socle enums create --name status --values draft --values published"},
	{"sql-functions", "database", "SQL and PL/pgSQL functions", "socle sql-functions list"},
	{"triggers", "database", "Triggers of a table",
		"socle triggers create books --name stamp --timing before --events update --function stamp"},
	{"policies", "database", "Row level security of a table",
		"socle policies create books --name own --command select --roles authenticated --using 'owner = current_user'"},
	{"default-privileges", "database", "Privileges on new tables and functions",
		"socle default-privileges update --mode supabase --existing"},
	{"grants", "database", "Privileges on a table",
		`socle grants update books --grants '[{"role": "anon", "privileges": ["select"]}]'`},
	{"extensions", "database", "PostgreSQL extensions", "socle extensions create --name pg_trgm"},
	{"gen", "database", "Generate source code for applications", "socle gen types --lang typescript > database.ts"},

	{"containers", "files", "Containers of files", "socle containers create --name pictures --is-public"},
	{"files", "files", "Files: upload, download, sign URLs", "socle files create pictures --file cat.png"},
	{"folders", "files", "Folders in a container", "socle folders delete pictures 2025"},
	{"forms", "files", "Forms: publish, count responses", "socle forms create --name Feedback"},
	{"fields", "files", "Fields of a form", "socle fields create Feedback --label Name --type text"},
	{"responses", "files", "Responses to a form", "socle responses export Feedback -o feedback.csv"},

	{"organizations", "people", "Organizations, which own projects", "socle organizations list"},
	{"members", "people", "Members of an organization and their roles", "socle members list Newspaper"},
	{"invitations", "people", "Invitations to an organization",
		"socle invitations create Newspaper --email grace@example.com --role developer"},
	{"users", "people", "Users of the install", "socle users create --username grace --email grace@example.com"},
	{"sessions", "people", "Your sessions", "socle sessions delete-others"},
	{"second-factor", "people", "Your second factor", "socle second-factor create"},
	{"tokens", "people", "Your personal access tokens",
		"socle tokens create --name laptop --role developer --expires-at 2027-01-01T00:00:00Z"},
	{"keys", "people", "API keys of a project", "socle keys create --name web --kind publishable"},
	{"s3-keys", "people", "Keys of a project for the S3 protocol", "socle s3-keys create --name rclone"},
	{"jwt-keys", "people", "Public keys that verify your users' JWTs", "socle jwt-keys list"},
	{"jwt-secret", "people", "The secret that signs your users' JWTs", "socle jwt-secret get"},
	{"vault-secrets", "people", "Secrets that SQL of the project reads",
		"socle vault-secrets create --name stripe_key"},
	{"end-users", "people", "Users of your application: list, ban, end their sessions",
		"socle end-users list --search example.com"},
	{"auth-settings", "people", "Rules for the users of your application",
		"socle auth-settings update --site-url https://app.example.com"},
	{"webhooks", "operations", "Webhooks: your endpoints are told of events",
		"socle webhooks create --name orders --endpoint https://example.com/hook --tables '[{\"table\": \"orders\"}]'"},
	{"webhook-deliveries", "operations", "Deliveries of a webhook: list, look at, retry",
		"socle webhook-deliveries list orders --status dead"},
	{"webhook-secrets", "operations", "The signing secret of a webhook", "socle webhook-secrets rotate orders"},
	{"mails", "people", "Mails to the users of your application that were not sent", "socle mails list"},

	{"backups", "operations", "Backups: make, prove, move, restore", "socle backups create --wait"},
	{"backup-schedule", "operations", "The backup schedule of a project",
		"socle backup-schedule update --cron '0 3 * * *' --keep-daily 7"},
	{"restores", "operations", "Restores, and how to undo them", "socle restores list"},
	{"requests", "operations", "Requests of the last week", "socle requests list --status 4xx --table books"},
	{"audit", "operations", "The audit log of a project", "socle audit list --action deleteTable"},
	{"quota", "operations", "Quota of a project", "socle quota get"},
	{"rest-settings", "operations", "Settings of the rows API", "socle rest-settings update --schemas public"},
	{"settings", "operations", "Settings of the install", "socle settings list"},
	{"instance", "operations", "The install: health, environment, audit log", "socle instance health"},
}

// findNoun returns the noun with a name, or nil.
func findNoun(name string) *noun {
	if i := slices.IndexFunc(nouns, func(n noun) bool { return n.name == name }); i >= 0 {
		return &nouns[i]
	}
	return nil
}

// renamed are the commands of operations whose id does not tell a usable one.
var renamed = map[string]string{
	"changeEmail":              "account change-email",
	"confirmEmail":             "account confirm-email",
	"createCompaction":         "tables compact",
	"createEndUserToken":       "end-users create-token",
	"createEnumValue":          "enums add-value",
	"createFunction":           "sql-functions create",
	"createSignedURL":          "files sign",
	"createSignedUpload":       "files sign-upload",
	"deleteEdgeFunction":       "functions delete",
	"deleteEdgeFunctionSecret": "functions secrets delete",
	"deleteEndUserFactor":      "end-users delete-factor",
	"deleteEndUserPasskey":     "end-users delete-passkey",
	"deleteEndUserSession":     "end-users end-session",
	"deleteEndUserSessions":    "end-users end-sessions",
	"deleteFunction":           "sql-functions delete",
	"deleteOtherSessions":      "sessions delete-others",
	"forgetPassword":           "account forgot-password",
	"getBackupRecipient":       "backups recipient",
	"getCompaction":            "tables compaction",
	"getEdgeFunctionLimits":    "functions limits",
	"getFormStatistics":        "forms statistics",
	"getFunction":              "sql-functions get",
	"getProjectOpenAPI":        "projects openapi",
	"getPublicForm":            "forms preview",
	"getRealtimeActivity":      "projects realtime",
	"getRealtimeLimits":        "projects realtime-limits",
	"getStatistics":            "projects statistics",
	"importRows":               "rows import",
	"inviteEndUser":            "end-users invite",
	"listEdgeFunctionMetrics":  "functions metrics",
	"listEdgeFunctionSecrets":  "functions secrets list",
	"listEdgeFunctionVersions": "functions versions",
	"listEdgeFunctions":        "functions list",
	"listEndUserFactors":       "end-users factors",
	"listEndUserIdentities":    "end-users identities",
	"listEndUserPasskeys":      "end-users passkeys",
	"listEndUserSessions":      "end-users sessions",
	"listEnvironment":          "instance environment",
	"listFunctions":            "sql-functions list",
	"listInstanceAudit":        "instance audit",
	"listLanguages":            "sql-functions languages",
	"listParts":                "instance health",
	"listQueries":              "sql history",
	"listRequestSeries":        "requests series",
	"listScheduleRuns":         "schedules runs",
	"previewMail":              "mails preview",
	"renameEnumValue":          "enums rename-value",
	"resetPassword":            "account reset-password",
	"resetSecondFactor":        "users reset-second-factor",
	"rotateAuthKey":            "auth-settings rotate-key",
	"sendEndUserMail":          "end-users send-mail",
	"sendTestMail":             "mails send-test",
	"updateEdgeFunction":       "functions update",
	"updateEdgeFunctionLimits": "functions set-limits",
	"updateRealtimeLimits":     "projects set-realtime-limits",
	"updateStanding":           "users set-status",
}

// handWritten are the operations whose commands are not generated.
var handWritten = map[string]string{
	"login": "login", "logout": "logout", "getTypes": "gen types", "runSQL": "sql run",
	"connectDatabase": "db proxy", "explainRequest": "explain", "importEndUsers": "end-users import",
	"listMigrations": "migrations status", "applyMigrations": "migrations up", "diffMigrations": "migrations diff",
	"deployEdgeFunction": "functions deploy", "setEdgeFunctionSecret": "functions secrets set",
	"listEdgeFunctionLog": "functions logs",
}

// words returns the verb and the noun of the command of the operation with an id: createFormField
// gives create and form-fields.
func words(id string) (verb, name string) {
	if c, ok := renamed[id]; ok {
		name, verb, _ = strings.Cut(c, " ")
		return verb, name
	}

	parts := split(id)
	name = strings.Join(parts[1:], "-")
	if findNoun(name) == nil {
		name = plural(name)
	}

	return parts[0], name
}

// plural returns the plural of a noun.
func plural(noun string) string {
	switch {
	case noun == "", strings.HasSuffix(noun, "s"):
		return noun
	case strings.HasSuffix(noun, "y") && !strings.HasSuffix(noun, "ey"):
		return strings.TrimSuffix(noun, "y") + "ies"
	case strings.HasSuffix(noun, "x"):
		return noun + "es"
	}

	return noun + "s"
}

// singular returns the singular of a plural that plural made.
func singular(noun string) string {
	switch {
	case strings.HasSuffix(noun, "ies"):
		return strings.TrimSuffix(noun, "ies") + "y"
	case strings.HasSuffix(noun, "xes"):
		return strings.TrimSuffix(noun, "es")
	}

	return strings.TrimSuffix(noun, "s")
}

// groupOf returns the command that groups the operations of a noun, and adds it if it is missing.
func groupOf(root *cobra.Command, name string) *cobra.Command {
	if c := findCommand(root, name); c != nil {
		return c
	}

	c := &cobra.Command{Use: name, Args: noCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	if one := singular(name); one != name && findCommand(root, one) == nil {
		c.Aliases = []string{one} // socle backup create
	}

	root.AddCommand(c)
	return c
}

// arrange sorts the commands into the groups of the help, and describes the nouns.
func arrange(root *cobra.Command) {
	root.AddGroup(groups...)

	for _, c := range root.Commands() {
		switch n := findNoun(c.Name()); {
		case n != nil:
			c.GroupID, c.Short, c.Example = n.group, n.short, "  "+n.example
		case c.GroupID == "":
			c.GroupID = groupServer
		}
	}

	root.SetHelpCommandGroupID(groupStart)
	root.SetCompletionCommandGroupID(groupStart)
}

// overviewWidth is the width of a terminal that shows the overview without a break.
const overviewWidth = 80

// printOverview prints the names of all commands by group, on one screen of 24 lines.
func printOverview(cmd *cobra.Command) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\nusage: socle NOUN VERB [flags]\n\n", cmd.Short)

	for _, g := range groups {
		var names []string
		for _, c := range cmd.Commands() {
			if c.GroupID == g.ID && c.IsAvailableCommand() {
				names = append(names, c.Name())
			}
		}

		line := g.Title
		for _, name := range names {
			if len(line)+1+len(name) > overviewWidth {
				fmt.Fprintln(&b, line)
				line = " "
			}

			line += " " + name
		}

		fmt.Fprintln(&b, line)
	}

	b.WriteString("\nsocle --help says what they do, socle tables --help what verbs a noun has.\n" +
		"Begin with: socle login --url ADDRESS\n")

	_, err := io.WriteString(cmd.OutOrStdout(), b.String())
	return err
}

func findCommand(parent *cobra.Command, name string) *cobra.Command {
	i := slices.IndexFunc(parent.Commands(), func(c *cobra.Command) bool { return c.Name() == name })
	if i < 0 {
		return nil
	}

	return parent.Commands()[i]
}
