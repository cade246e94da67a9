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
	entities          []func() // each registers the operations of an entity
}

// chapters returns the chapters in the order in which one meets them: first an account, then a
// project, then its contents, at last the install.
func (s *Server) chapters() []chapter {
	return []chapter{
		{"Accounts", "Sign up, log in, and manage your user: sessions, passwords, second factors, personal access tokens.",
			[]func(){s.registerUsers, s.registerSessions, s.registerPasswords, s.registerAccounts, s.registerFactors,
				s.registerTokens}},
		{"Organizations", "An organization owns projects. Its members have a role in all of them.",
			[]func(){s.registerOrganizations, s.registerMembers, s.registerInvitations}},
		{"Projects", "A project is a PostgreSQL database of its own, with files, forms and backups.",
			[]func(){s.registerProjects, s.registerQuotas, s.registerStatistics, s.registerRequests, s.registerAudit,
				s.registerLint}},
		{"Keys", "Credentials of applications: API keys, and JSON Web Tokens of your own users.",
			[]func(){s.registerKeys, s.registerJWTKeys}},
		{"Tables", "Tables and their columns, indexes, constraints, triggers and enums.",
			[]func(){s.registerTables, s.registerColumns, s.registerIndexes, s.registerConstraints, s.registerTriggers,
				s.registerEnums, s.registerCompactions}},
		{"Access to rows", "Privileges of the roles anon, authenticated and service_role, and row level security.",
			[]func(){s.registerGrants, s.registerPolicies}},
		{"Rows", "Applications read and write rows at `/projects/{projectUUID}/rest/v1`, by PostgREST's contract, with a key " +
			"of the project. The operations of this chapter describe that API, and import and export whole tables.",
			[]func(){s.registerRows, s.registerTransfers, s.registerTypes}},
		{"SQL", "SQL in a project's database: statements, functions, extensions.",
			[]func(){s.registerSQL, s.registerFunctions, s.registerExtensions}},
		{"Files", "Files in containers, which are public or for members: upload, download, pictures, signed URLs.",
			[]func(){s.registerContainers, s.registerFiles, s.registerSignedURLs, s.registerTus}},
		{"Forms", "Forms, their fields, and responses from people without an account.",
			[]func(){s.registerForms, s.registerFields, s.registerSubmissions, s.registerResponses}},
		{"Backups", "Encrypted backups of a project, proven by a trial restore; schedules and restores.",
			[]func(){s.registerBackups, s.registerBackupArchives, s.registerRestores}},
		{"Instance", "For administrators of the install: users, settings, health.",
			[]func(){s.registerAdministration, s.registerHealth}},
	}
}

// describeTypes gives schemas to types that have none of their own. It precedes all operations.
func (s *Server) describeTypes() {
	operation.DescribeAs[form.Opt[string], string](s.pipeline)
	operation.DescribeAs[form.Opt[bool], bool](s.pipeline)
	operation.DescribeAs[form.Opt[int64], int64](s.pipeline)
	operation.DescribeAs[form.Answers, answersSchema](s.pipeline)
	operation.DescribeAs[jsontext.Value, anySchema](s.pipeline)
	operation.DescribeAs[statement.Rows, [][]any](s.pipeline)
}
