package api

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/socle-dev/socle/internal/form"
	"github.com/socle-dev/socle/internal/operation"
	"github.com/socle-dev/socle/internal/statement"
)

// chapter is a chapter of the OpenAPI document: entities that one works with together.
type chapter struct {
	name, description string
	rules             string   // heading in docs/api.md with its rules
	entities          []func() // each registers the operations of an entity
}

// chapters returns the chapters in the order in which one meets them: first an account, then a
// project, then its contents, at last the install.
func (s *Server) chapters() []chapter {
	return []chapter{
		{"Accounts", "Sign up, log in, and manage your user: sessions, passwords, second factors, personal access tokens.",
			"users-tokens-roles",
			[]func(){s.registerUsers, s.registerSessions, s.registerPasswords, s.registerAccounts, s.registerFactors,
				s.registerTokens}},
		{"Organizations", "An organization owns projects. Its members have a role in all of them.",
			"organizations",
			[]func(){s.registerOrganizations, s.registerMembers, s.registerInvitations}},
		{"Projects", "A project is a PostgreSQL database of its own, with files, forms and backups.",
			"projects",
			[]func(){s.registerProjects, s.registerQuotas, s.registerStatistics, s.registerRequests, s.registerAudit,
				s.registerLint}},
		{"Tables", "Tables and their columns, indexes, constraints, triggers and enums.",
			"tables-and-columns",
			[]func(){s.registerTables, s.registerColumns, s.registerIndexes, s.registerConstraints, s.registerTriggers,
				s.registerEnums, s.registerCompactions}},
		{"Access to rows", "Privileges of the roles anon, authenticated and service_role, and row level security.",
			"policies-and-grants",
			[]func(){s.registerGrants, s.registerDefaultPrivileges, s.registerPolicies}},
		{"Keys", "Credentials of applications: API keys, S3 keys, and JSON Web Tokens of your own users.",
			"keys",
			[]func(){s.registerKeys, s.registerS3Keys, s.registerJWTKeys}},
		{"End users", "Users of your application, who sign up and in at `/projects/{projectUUID}/auth/v1` by Supabase Auth's " +
			"contract. The operations of this chapter manage them, their rules and their mails.",
			"end-users",
			[]func(){s.registerEndUsers, s.registerAuthSettings}},
		{"Rows", "Applications read and write rows at `/projects/{projectUUID}/rest/v1`, by PostgREST's contract, with a " +
			"key of the project. The operations of this chapter describe that API, and import and export whole tables.",
			"rows",
			[]func(){s.registerRows, s.registerTransfers, s.registerTypes}},
		{"SQL", "SQL in a project's database: statements, functions, extensions.",
			"sql",
			[]func(){s.registerSQL, s.registerMigrations, s.registerDatabase, s.registerFunctions,
				s.registerExtensions}},
		{"Files", "Files in containers, which are public or for members: upload, download, pictures, signed URLs.",
			"containers-and-files",
			[]func(){s.registerContainers, s.registerFiles, s.registerSignedURLs, s.registerTus}},
		{"Forms", "Forms, their fields, and responses from people without an account.",
			"forms",
			[]func(){s.registerForms, s.registerFields, s.registerSubmissions, s.registerResponses}},
		{"Backups", "Encrypted backups of a project, proven by a trial restore; schedules and restores.",
			"backups",
			[]func(){s.registerBackups, s.registerBackupArchives, s.registerRestores}},
		{"Instance", "For administrators of the install: users, settings, health.",
			"administration",
			[]func(){s.registerAdministration, s.registerHealth}},
	}
}

// describeTypes gives schemas to types that have none of their own. It precedes all operations.
func (s *Server) describeTypes() {
	operation.DescribeAs[form.Opt[string], string](s.pipeline)
	operation.DescribeAs[form.Opt[bool], bool](s.pipeline)
	operation.DescribeAs[form.Opt[int64], int64](s.pipeline)
	operation.DescribeAs[form.Opt[[]string], []string](s.pipeline)
	operation.DescribeAs[form.Answers, answersSchema](s.pipeline)
	operation.DescribeAs[jsontext.Value, anySchema](s.pipeline)
	operation.DescribeAs[statement.Rows, [][]any](s.pipeline)
}
