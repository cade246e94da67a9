package api_test

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/api/apitest"
)

// right is the role that an operation requires, and a body with which it succeeds.
type right struct {
	minRole int // role in the project's organization, as in roleId
	body    string
}

const (
	anyone        = 0
	administrator = 1
	signedIn      = 9
)

// rights has an entry for every operation. {n} in a body stands for a number unique to the request.
var rights = map[string]right{
	"createUser": {anyone,
		`{"username": "new-{n}", "email": "new-{n}@example.com", "password": "` + apitest.Password + `"}`},
	"login":          {anyone, `{"email": "{email}", "password": "` + apitest.Password + `"}`},
	"updateUser":     {signedIn, `{"bio": "changed"}`},
	"createProject":  {3, `{"name": "project {n}", "organization_uuid": "{organization}"}`},
	"listProjects":   {signedIn, ""},
	"getProject":     {5, ""},
	"updateProject":  {3, `{"description": "changed"}`},
	"deleteProject":  {2, ""},
	"restoreProject": {2, ""},
	"pauseProject":   {3, ""},
	"resumeProject":  {3, ""},
	"listRequests":   {4, ""},
	"getStatistics":  {5, ""},

	"listRequestSeries":   {5, ""},
	"getRealtimeActivity": {4, ""}, "getRealtimeLimits": {5, ""},
	"updateRealtimeLimits": {1, `{"sockets": 500}`},
	"createSavedQuery":     {4, `{"name": "query {n}", "query": "select {n}"}`},
	"listSavedQueries":     {4, ""},
	"updateSavedQuery":     {4, `{"query": "select 2"}`},
	"deleteSavedQuery":     {4, ""},

	"createKey":        {3, `{"name": "key {n}", "kind": "secret"}`},
	"listKeys":         {3, ""},
	"deleteKey":        {3, ""},
	"createS3Key":      {3, `{"name": "key {n}"}`},
	"listS3Keys":       {3, ""},
	"deleteS3Key":      {3, ""},
	"createWebhook":    {4, `{"name": "hook {n}", "endpoint": "https://example.com/"}`},
	"listWebhooks":     {4, ""},
	"getWebhook":       {4, ""},
	"updateWebhook":    {4, `{"ordered": true}`},
	"deleteWebhook":    {4, ""},
	"testWebhook":      {4, ""},
	"replayWebhook":    {4, `{"from": "2026-01-01T00:00:00Z"}`},
	"createSchedule":   {4, `{"name": "schedule {n}", "cron": "@yearly", "command": "select 1"}`},
	"listSchedules":    {4, ""},
	"getSchedule":      {4, ""},
	"updateSchedule":   {4, `{"active": false}`},
	"deleteSchedule":   {4, ""},
	"runSchedule":      {4, ""},
	"listScheduleRuns": {4, ""},

	"getJWTSecret":    {3, ""},
	"connectDatabase": {3, ""},

	"rotateWebhookSecret":   {4, ""},
	"listWebhookDeliveries": {4, ""},
	"getWebhookDelivery":    {4, ""},
	"retryWebhookDelivery":  {4, ""},

	"createDatabaseCredential": {3, `{"name": "credential {n}", "access": "read_only"}`},
	"listDatabaseCredentials":  {3, ""},
	"getDefaultPrivileges":     {5, ""},
	"updateDefaultPrivileges":  {4, `{"mode": "supabase"}`},
	"deleteDatabaseCredential": {3, ""},

	"createTable":       {4, `{"name": "t{n}", "columns": [{"name": "id", "type": "integer"}]}`},
	"listTables":        {5, ""},
	"getTable":          {5, ""},
	"renameTable":       {4, `{"name": "r{n}"}`},
	"listColumns":       {5, ""},
	"createColumn":      {4, `{"name": "c{n}", "type": "integer"}`},
	"createFunction":    {4, `{"name": "f{n}", "language": "sql", "definition": "select 1", "return_type": "integer"}`},
	"deleteFunction":    {4, ""},
	"createForm":        {4, `{"name": "form {n}"}`},
	"listForms":         {5, ""},
	"getForm":           {5, ""},
	"updateForm":        {4, `{"description": "changed"}`},
	"deleteForm":        {4, ""},
	"linkForm":          {4, ""},
	"unlinkForm":        {4, ""},
	"createField":       {4, `{"label": "field {n}", "type": "text"}`},
	"updateField":       {4, `{"label": "field {n}", "type": "text"}`},
	"listFields":        {5, ""},
	"getField":          {5, ""},
	"deleteField":       {4, ""},
	"orderFields":       {4, `{"fields": ["{fieldUUID}"]}`},
	"getPublicForm":     {5, ""},
	"createResponse":    {5, `{"answers": {}}`},
	"updateResponse":    {5, `{"token": "{token}"}`},
	"listResponses":     {5, ""},
	"getResponse":       {5, ""},
	"deleteResponse":    {4, ""},
	"exportResponses":   {5, ""},
	"getFormStatistics": {5, ""},
	"createContainer":   {4, `{"name": "container-{n}"}`},
	"updateContainer":   {4, `{"description": "changed"}`},
	"listFiles":         {5, ""},
	"listContainers":    {5, ""},
	"getContainer":      {5, ""},
	"deleteContainer":   {4, ""},
	"getFile":           {5, ""},
	"updateFile":        {4, `{"full_file_name": "moved-{n}"}`},
	"deleteFile":        {4, ""},
	"deleteFolder":      {4, ""},
	"createFile":        {4, multipartOf("{n}.txt", "hello")},
	"downloadFile":      {5, ""},
	"readFile":          {5, ""},
	"writeFile":         {4, "hello"},

	"getQuota":           {5, ""},
	"updateQuota":        {1, `{"max_files": 10000}`},
	"createSignedURL":    {5, `{"expires_in": 60}`},
	"createSignedUpload": {4, `{"full_file_name": "signed.txt", "expires_in": 60}`},

	"createBackup":  {4, `{}`},
	"getBackup":     {5, ""},
	"listAudit":     {3, ""},
	"getTypes":      {5, ""},
	"listBackups":   {5, ""},
	"deleteBackup":  {3, ""},
	"restoreBackup": {3, `{"target": "new", "name": "restored {n}"}`},
	"getRestore":    {5, ""},
	"deleteRestore": {2, ""},

	"getBackupSchedule":    {5, ""},
	"updateBackupSchedule": {3, `{"cron": "0 3 1 1 *"}`},
	"deleteBackupSchedule": {3, ""},
	"downloadBackup":       {3, `{"encryption": "none"}`},
	"importBackup":         {3, "hello"},
	"verifyBackup":         {4, ""},
	"getBackupRecipient":   {5, ""},
	"listRestores":         {5, ""},
	"undoRestore":          {2, ""},

	"getProjectOpenAPI": {5, ""},

	// structure of a project's database
	"updateTable":        {4, `{"comment": "changed"}`},
	"duplicateTable":     {4, `{"name": "d{n}"}`},
	"deleteTable":        {4, ""},
	"updateColumn":       {4, `{"comment": "changed"}`},
	"deleteColumn":       {4, ""},
	"listConstraints":    {5, ""},
	"createConstraint":   {4, `{"name": "k{n}", "type": "check", "expression": "note <> ''"}`},
	"validateConstraint": {4, ""},
	"deleteConstraint":   {4, ""},
	"listIndexes":        {5, ""},
	"getIndex":           {5, ""},
	"createIndex":        {4, `{"name": "i{n}", "columns": ["note"]}`},
	"deleteIndex":        {4, ""},
	"createCompaction":   {4, ""},
	"getCompaction":      {5, ""},
	"listPolicies":       {5, ""},
	"createPolicy":       {4, `{"name": "p{n}", "roles": ["authenticated"], "using": "true"}`},
	"updatePolicy":       {4, `{"using": "true"}`},
	"deletePolicy":       {4, ""},
	"listGrants":         {5, ""},
	"updateGrants":       {4, `{"grants": [{"role": "anon", "privileges": ["select"]}]}`},
	"listEnums":          {5, ""},
	"createEnum":         {4, `{"name": "e{n}", "values": ["a"]}`},
	"createEnumValue":    {4, `{"value": "v{n}"}`},
	"renameEnumValue":    {4, `{"value": "good"}`},
	"deleteEnum":         {4, ""},
	"listExtensions":     {5, ""},
	"createExtension":    {4, `{"name": "plperlu"}`},
	"deleteExtension":    {4, ""},
	"lintProject":        {5, ""},
	"listFunctions":      {5, ""},
	"getFunction":        {5, ""},
	"listLanguages":      {5, ""},
	"createTrigger":      {4, `{"name": "g{n}", "timing": "before", "events": ["insert"], "function": "stamp"}`},
	"listTriggers":       {5, ""},
	"updateTrigger":      {4, `{"enabled": true}`},
	"deleteTrigger":      {4, ""},
	"exportTable":        {4, ""},
	"importTable":        {4, part(`form-data; name="file"; filename="i{n}.csv"`, "", "id,note\n1,x\n") + end},
	"importRows":         {4, part(`form-data; name="file"; filename="rows.csv"`, "", "id,note\n{n},x\n") + end},
	"runSQL":             {4, `{"query": "select {n}"}`},
	"listQueries":        {4, ""},
	"listMigrations":     {5, ""},
	"applyMigrations":    {4, `{"migrations": []}`},
	"diffMigrations": {4,
		`{"migrations": [{"version": "20261123101500", "name": "one", "sql": "select 1", "checksum": "of another"}]}`},

	"refreshSession":      {anyone, `{"refresh_token": "{refresh}"}`},
	"logout":              {signedIn, ""},
	"listSessions":        {signedIn, ""},
	"deleteSession":       {signedIn, ""},
	"forgetPassword":      {anyone, `{"email": "{email}"}`},
	"resetPassword":       {anyone, `{"token": "{reset}", "password": "` + apitest.Password + `"}`},
	"changeEmail":         {signedIn, `{"email": "new-{n}@example.com", "password": "` + apitest.Password + `"}`},
	"confirmEmail":        {anyone, `{"token": "{confirm}"}`},
	"deleteUser":          {signedIn, ""},
	"createToken":         {signedIn, `{"name": "token {n}", "role_id": 4, "expires_at": "{tomorrow}"}`},
	"listTokens":          {signedIn, ""},
	"deleteToken":         {signedIn, ""},
	"getAccount":          {signedIn, ""},
	"deleteOtherSessions": {signedIn, ""},
	"deleteAccount":       {signedIn, passwordBody},
	"getSecondFactor":     {signedIn, ""},
	"createSecondFactor":  {signedIn, passwordBody},
	"confirmSecondFactor": {signedIn, `{"code": "{code}"}`},
	"deleteSecondFactor":  {signedIn, passwordBody},
	"getMe":               {signedIn, ""},
	"deleteSessions":      {signedIn, ""},
	"deleteMe":            {signedIn, passwordBody},

	"createOrganization":   {signedIn, `{"name": "organization {n}"}`},
	"listOrganizations":    {signedIn, ""},
	"getOrganization":      {5, ""},
	"updateOrganization":   {3, `{"name": "organization {n}"}`},
	"deleteOrganization":   {2, ""},
	"listMembers":          {5, ""},
	"updateMember":         {3, `{"role_id": 5}`},
	"deleteMember":         {3, ""},
	"leaveOrganization":    {5, ""},
	"transferOrganization": {2, `{"user_uuid": "{memberUUID}"}`},
	"createInvitation":     {3, `{"email": "invited-{n}@example.com", "role_id": 5}`},
	"listInvitations":      {3, ""},
	"resendInvitation":     {3, ""},
	"deleteInvitation":     {3, ""},
	"previewInvitation":    {anyone, ""},
	"acceptInvitation":     {signedIn, `{"token": "{invitation}"}`},
	"listUsers":            {administrator, ""},
	"getUser":              {administrator, ""},
	"updateStanding":       {administrator, `{"status": "active"}`},
	"resetSecondFactor":    {administrator, ""},
	"listSettings":         {administrator, ""},
	"listInstanceAudit":    {administrator, ""},
	"updateSetting":        {administrator, `{"value": 100}`},
	"resetSetting":         {administrator, ""},
	"listEnvironment":      {administrator, ""},
	"listParts":            {administrator, ""},

	// end users
	"createEndUser":         {3, `{"email": "user-{n}@example.com"}`},
	"importEndUsers":        {3, `{"users": [{"uuid": "5e1f4c1c-3f0e-4a4b-9a51-0d7f6f6b2f10"}]}`},
	"listEndUsers":          {3, ""},
	"getEndUser":            {3, ""},
	"updateEndUser":         {3, `{"ban_duration": "none"}`},
	"deleteEndUser":         {3, ""},
	"deleteEndUserSessions": {3, ""},
	"listEndUserSessions":   {3, ""},
	"deleteEndUserSession":  {3, ""},
	"listEndUserFactors":    {3, ""},
	"deleteEndUserFactor":   {3, ""},
	"listEndUserPasskeys":   {3, ""},
	"deleteEndUserPasskey":  {3, ""},
	"listEndUserIdentities": {3, ""},
	"inviteEndUser":         {3, `{"email": "guest-{n}@example.com"}`},
	"sendEndUserMail":       {3, `{"kind": "recovery"}`},
	"previewMail":           {3, `{"kind": "recovery"}`},
	"sendTestMail":          {3, `{"kind": "recovery"}`},
	"explainRequest":        {4, ""},
	"createEndUserToken":    {4, `{"user": "to-see-{n}@example.com"}`},
	"getAuthSettings":       {3, ""},
	"updateAuthSettings":    {3, `{"sign_up": true}`},
	"rotateAuthKey":         {3, ""},
	"listMails":             {3, ""},
	"getMail":               {3, ""},

	// rows API
	"deployEdgeFunction":       {4, `{"code": "Deno.serve(() => new Response());"}`},
	"listEdgeFunctions":        {5, ""},
	"listEdgeFunctionVersions": {5, ""},
	"updateEdgeFunction":       {4, `{"verify_jwt": false}`},
	"deleteEdgeFunction":       {4, ""},
	"listEdgeFunctionLog":      {4, ""},
	"setEdgeFunctionSecret":    {3, `{"value": "s3cret"}`},
	"listEdgeFunctionSecrets":  {3, ""},
	"deleteEdgeFunctionSecret": {3, ""},
	"getEdgeFunctionLimits":    {5, ""},
	"updateEdgeFunctionLimits": {1, `{"memory_mb": 512}`},
	"listEdgeFunctionMetrics":  {5, ""},
	"createVaultSecret":        {3, `{"name": "secret {n}", "secret": "s3cret"}`},
	"listVaultSecrets":         {3, ""},
	"updateVaultSecret":        {3, `{"secret": "s3cret"}`},
	"deleteVaultSecret":        {3, ""},
	"createJWTKey": {3,
		`{"kty": "EC", "kid": "{n}", "crv": "P-256", "x": "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU", "y": "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}`},
	"listJWTKeys":        {3, ""},
	"deleteJWTKey":       {3, ""},
	"getRestSettings":    {3, ""},
	"updateRestSettings": {3, `{"schemas": ["public"]}`},
}

// operation is an operation of the OpenAPI document.
type operation struct {
	id, method, path string
	declared         []int
	bearer           bool // requires credentials
	header           bool // X-Project names the project
	thing            bool // the path names an entity of the project
}

var placeholder = regexp.MustCompile(`\{(\w+)\}`)

// operations returns the operations of the OpenAPI document of the server.
func operations(t *testing.T, a *apitest.API) []operation {
	t.Helper()

	var document struct {
		Paths map[string]map[string]struct {
			OperationID string
			Parameters  []struct{ Name string }
			Responses   map[string]any
			Security    []map[string]any
		}
	}
	if err := json.Unmarshal(a.Get("/openapi.json").Want(200).Body, &document); err != nil {
		t.Fatal(err)
	}

	var all []operation
	for path, methods := range document.Paths {
		for method, d := range methods {
			o := operation{id: d.OperationID, method: strings.ToUpper(method), path: path}
			for status := range d.Responses {
				n, err := strconv.Atoi(status)
				if err != nil {
					t.Fatal(err)
				}

				o.declared = append(o.declared, n)
			}

			o.bearer = len(d.Security) > 0 && !slices.ContainsFunc(d.Security, func(s map[string]any) bool {
				return len(s) == 0
			})

			for _, p := range d.Parameters {
				o.header = o.header || p.Name == "X-Project"
			}

			for _, p := range placeholder.FindAllStringSubmatch(path, -1) {
				if p[1] == "organizationUUID" || p[1] == "settingName" {
					continue
				}

				o.thing = o.thing ||
					!slices.Contains([]string{
						"schema", "projectUUID", "formUUID", "userUUID", "sessionUUID", "tokenUUID",
					}, p[1])
			}

			if o.id == "deployEdgeFunction" || o.id == "setEdgeFunctionSecret" {
				o.thing = false // it creates what its path names
			}

			all = append(all, o)
		}
	}

	slices.SortFunc(all, func(a, b operation) int { return strings.Compare(a.id, b.id) })
	return all
}

// first returns the first of the statuses that the operation declares, or 0.
func (o operation) first(statuses ...int) int {
	for _, s := range statuses {
		if slices.Contains(o.declared, s) {
			return s
		}
	}

	return 0
}

// send calls the operation with names in the place of its parameters.
func (o operation) send(caller *apitest.API, names map[string]string, body string, headers ...string) *apitest.Reply {
	fill := func(text string) string {
		return placeholder.ReplaceAllStringFunc(text, func(p string) string {
			if name, ok := names[strings.Trim(p, "{}")]; ok {
				return name
			}
			return p
		})
	}

	if slices.Contains(uploads, o.id) {
		headers = append(headers, "Content-Type: multipart/form-data; boundary="+boundary)
	}
	if o.id == "previewInvitation" {
		o.path += "?token={invitation}"
	}

	return caller.Send(o.method, fill(o.path), fill(body), headers...)
}

// parameterNames returns the values of the path parameters for the entities of a populated project.
func parameterNames(f fixture, table string) map[string]string {
	return map[string]string{"projectUUID": f.Project, "formUUID": f.form, "fieldUUID": f.field,
		"responseUUID": f.response, "containerUUID": f.container, "fileUUID": f.file, "keyUUID": apitest.MissingUUID,
		"credentialUUID": apitest.MissingUUID, "webhookUUID": apitest.MissingUUID, "deliveryUUID": apitest.MissingUUID,
		"endUserUUID": apitest.MissingUUID, "mailUUID": apitest.MissingUUID,
		"endUserSessionUUID": apitest.MissingUUID, "factorUUID": apitest.MissingUUID,
		"passkeyUUID":    apitest.MissingUUID,
		"savedQueryUUID": apitest.MissingUUID,
		"requestUUID":    apitest.MissingUUID,
		"jwtKeyUUID":     apitest.MissingUUID, "vaultSecretUUID": apitest.MissingUUID,
		"scheduleName": "schedule",
		"edgeFunction": "hello", "secretName": "KEY",
		"folder": "folder", "fullFileName": "a.txt", "backupUUID": f.backup,
		"restoreUUID": f.restore, "tableUUID": f.tableUUID, "fullTableName": table, "columnName": "note",
		"constraintName": "noted", "policyName": "own", "indexName": "noted_index", "enumName": table + "_mood",
		"enumValue":     "good",
		"extensionName": map[bool]string{true: "tsm_system_rows", false: "tsm_system_time"}[table == "kept"],
		"schema":        "public", "triggerName": "stamp", "userUUID": f.User, "sessionUUID": apitest.MissingUUID,
		"tokenUUID": apitest.MissingUUID, "tomorrow": tomorrow(), "organization": f.Organization, "email": f.Email}
}

// matrixCaller is a caller with the roles in the two projects of the matrix; 0 is no role.
type matrixCaller struct {
	name        string
	api         *apitest.API
	own, theirs int
}

// target is the project of a request, in X-Project, and the entities in its path and body.
type target struct {
	name, project string
	names         map[string]string
}

// TestRights calls each operation as each kind of caller, for four targets: an entity of the
// caller's own organization, of another one, of another one through the caller's own project, and a
// missing one.
func TestRights(t *testing.T) {
	t.Parallel()

	a := apitest.Users(t)
	administrator := a.SignUp("first")
	owner, outsider := a.SignUp("owner"), a.SignUp("outsider")
	owner.Project, outsider.Project = owner.CreateProject("own"), outsider.CreateProject("theirs")

	own, theirs := parameterNames(populate(t, owner), "kept"), parameterNames(populate(t, outsider), "secret")
	addOrganizationNames(own, owner)
	addOrganizationNames(theirs, outsider)
	owner.CreateTable("kept")
	outsider.CreateTable("secret")
	owner.Post("/enums", `{"name": "kept_mood", "values": ["good"]}`).Want(201)
	outsider.Post("/enums", `{"name": "secret_mood", "values": ["good"]}`).Want(201)

	// A backup is always running, so an authorized createBackup returns 409. Its date is in the
	// future, so it is never marked as failed.
	a.Exec(`insert into platform.backups (uuid, project_uuid, created_by, created_at) select gen_random_uuid(), uuid, created_by, now() + interval '1 hour' from platform.projects`)
	own["spareUUID"], theirs["spareUUID"] = owner.CreateProject("spare"), outsider.CreateProject("spare")
	mixed, absent := maps.Clone(theirs), map[string]string{}
	mixed["projectUUID"], mixed["formUUID"] = owner.Project, own["formUUID"]
	mixed["organizationUUID"] = owner.Organization

	for name := range own {
		absent[name] = apitest.MissingUUID
	}

	absent["fullTableName"], absent["schema"], absent["email"], absent["tomorrow"] = "absent", "public",
		owner.Email, tomorrow()

	callers := []matrixCaller{{"anonymous", a.Anonymous(), 0, 0}, {"outsider", outsider, 0, 2},
		{"viewer", owner.Member(5), 5, 0}, {"developer", owner.Member(4), 4, 0}, {"admin", owner.Member(3), 3, 0},
		{"owner", owner, 2, 0}, {"administrator", administrator, 1, 1}}

	targets := []target{
		{"own", owner.Project, own}, {"theirs", outsider.Project, theirs}, {"mixed", owner.Project, mixed},
		{"absent", owner.Project, absent},
	}

	forms := map[*apitest.API]string{owner: own["formUUID"], outsider: theirs["formUUID"]}

	type use struct {
		id    string
		owner *apitest.API
	}

	// unused holds the entities created for an operation that was refused, and so still exist.
	unused := map[use]map[string]string{}
	n := 0
	for _, o := range operations(t, a) {
		r, ok := rights[o.id]
		if !ok {
			t.Errorf("%s: missing in rights", o.id)
			continue
		}

		for _, v := range callers {
			replies := map[string]*apitest.Reply{}
			for _, at := range targets {
				if (at.name == "mixed" && !o.thing) || (at.name != "own" && !o.aimed(r)) {
					continue
				}

				if at.name == "absent" && o.header && !o.thing {
					at.project = apitest.MissingUUID
				}

				n++
				names := maps.Clone(at.names)
				names["n"], names["functionName"] = strconv.Itoa(n), "f"+strconv.Itoa(n)

				want := o.want(r, v, at)
				setUpOrganization(t, o.id, map[string]*apitest.API{"own": owner, "theirs": outsider}[at.name],
					v, want, names)

				targetOwner := map[string]*apitest.API{"own": owner, "theirs": outsider, "mixed": outsider}[at.name]
				if targetOwner != nil && unused[use{o.id, targetOwner}] == nil {
					unused[use{o.id, targetOwner}] = provide(t, o.id, targetOwner, names, forms[targetOwner], want)
				}

				maps.Copy(names, unused[use{o.id, targetOwner}])
				caller := accountCaller(t, o, v, names,
					map[string]*apitest.API{"own": owner, "theirs": outsider}[at.name]).
					WithProject(at.project)

				if v.name == "administrator" && at.name == "own" && slices.Contains(o.declared, 412) {
					o.send(caller, names, r.body, `If-Match: "of another state"`).Want(412).Code("changed")
				}

				replies[at.name] = o.send(caller, names, r.body)
				if replies[at.name].Status < 400 {
					delete(unused, use{o.id, targetOwner})
				}
				if at.name == "own" && slices.Contains(o.declared, 304) && replies[at.name].Status == 200 {
					o.send(caller, names, "", "If-None-Match: *").Want(304)
				}
				if got := replies[at.name].Status; got != want {
					t.Errorf("%s by %s, target %s: got %d, want %d\n%s", o.id, v.name, at.name, got, want,
						replies[at.name].Body)
				}
			}

			if o.thing {
				wantAlike(t, o, v, replies["mixed"], replies["absent"])
			}
			if !o.header && v.theirs == 0 && o.aimed(r) {
				wantAlike(t, o, v, replies["theirs"], replies["absent"])
			}
		}
	}
}

// provide creates the entity that an operation deletes or changes for good. It returns the names of
// the entity, or nil if the operation needs none.
func provide(
	t *testing.T, id string, targetOwner *apitest.API, names map[string]string, form string, want int,
) map[string]string {
	t.Helper()

	n := names["n"]
	switch {
	case id == "deleteFunction" || id == "getFunction":
		targetOwner.Post("/functions/public", strings.ReplaceAll(rights["createFunction"].body, "{n}", n)).Want(201)
		return map[string]string{"functionName": "f" + n}
	case entitySetups[id] != nil:
		created := maps.Clone(names)
		entitySetups[id](t, targetOwner, created)
		maps.DeleteFunc(created, func(name, value string) bool { return names[name] == value })

		return created
	case id == "deleteTrigger":
		targetOwner.Post("/tables/"+names["tableUUID"]+"/triggers",
			strings.ReplaceAll(rights["createTrigger"].body, "{n}", n)).Want(201)
		return map[string]string{"triggerName": "g" + n}
	case id == "deleteKey":
		return map[string]string{
			"keyUUID": targetOwner.Create("/projects/"+targetOwner.Project+"/keys",
				`{"name": "to go `+n+`", "kind": "secret"}`),
		}
	case id == "deleteS3Key":
		return map[string]string{
			"keyUUID": targetOwner.Create("/projects/"+targetOwner.Project+"/s3-keys", `{"name": "to go `+n+`"}`),
		}
	case id == "updateEdgeFunction" || id == "deleteEdgeFunction" || id == "listEdgeFunctionVersions":
		targetOwner.Put("/projects/"+targetOwner.Project+"/edge-functions/f"+n,
			`{"code": "Deno.serve(() => new Response());"}`).Want(200)
		return map[string]string{"edgeFunction": "f" + n}
	case id == "deleteEdgeFunctionSecret":
		targetOwner.Put("/projects/"+targetOwner.Project+"/edge-function-secrets/S"+n, `{"value": "s3cret"}`).Want(200)
		return map[string]string{"secretName": "S" + n}
	case id == "updateVaultSecret" || id == "deleteVaultSecret":
		return map[string]string{
			"vaultSecretUUID": targetOwner.Create("/projects/"+targetOwner.Project+"/vault-secrets",
				`{"name": "to go `+n+`", "secret": "s3cret"}`),
		}
	case slices.Contains(
		[]string{"getSchedule", "updateSchedule", "deleteSchedule", "runSchedule", "listScheduleRuns"}, id):
		name := "to-go-" + n
		targetOwner.Post("/projects/"+targetOwner.Project+"/schedules",
			`{"name": "`+name+`", "cron": "@yearly", "command": "select 1", "active": false}`).Want(201)
		return map[string]string{"scheduleName": name}
	case strings.Contains(id, "Webhook"):
		return createWebhook(targetOwner, n)
	case id == "getMail":
		return map[string]string{"mailUUID": createMail(t, targetOwner)}
	case id == "updateSavedQuery" || id == "deleteSavedQuery":
		return map[string]string{"savedQueryUUID": targetOwner.Create("/projects/"+targetOwner.Project+"/saved-queries",
			`{"name": "to go `+n+`", "query": "select 1"}`)}
	case id == "deleteEndUserSession" || id == "deleteEndUserFactor" || id == "deleteEndUserPasskey":
		return createSignIn(t, targetOwner, n)
	case slices.Contains([]string{"getEndUser", "updateEndUser", "deleteEndUser", "deleteEndUserSessions",
		"listEndUserSessions", "listEndUserFactors", "listEndUserPasskeys", "listEndUserIdentities",
		"sendEndUserMail"}, id):
		return map[string]string{
			"endUserUUID": targetOwner.Create("/projects/"+targetOwner.Project+"/end-users",
				`{"email": "to-go-`+n+`@example.com"}`),
		}
	case id == "explainRequest":
		request := ""
		until(t, "a request is kept", func() bool {
			all := values(targetOwner.Get("/projects/"+targetOwner.Project+"/requests").Want(200), "uuid")
			if len(all) > 0 {
				request = all[0]
			}
			return request != ""
		})
		return map[string]string{"requestUUID": request}
	case id == "createEndUserToken":
		targetOwner.Post("/projects/"+targetOwner.Project+"/end-users",
			`{"email": "to-see-`+n+`@example.com"}`).Want(201)
		return nil
	case id == "deleteDatabaseCredential":
		return map[string]string{
			"credentialUUID": targetOwner.Create("/projects/"+targetOwner.Project+"/database-credentials",
				`{"name": "to go `+n+`", "access": "owner"}`),
		}
	case id == "deleteContainer":
		return map[string]string{"containerUUID": targetOwner.Create("/containers", `{"name": "to-go-`+n+`"}`)}
	case id == "deleteFile" || id == "deleteFolder":
		file := upload(targetOwner, names["containerUUID"], "to-go-"+n+"/a.txt", "hello").Want(201).Get("uuid").(string)
		return map[string]string{"folder": "to-go-" + n, "fileUUID": file}
	case slices.Contains([]string{"deleteBackup", "restoreBackup", "verifyBackup"}, id):
		return map[string]string{"backupUUID": oldBackup(t, targetOwner)}
	case id == "deleteRestore", id == "undoRestore":
		return map[string]string{"restoreUUID": oldRestore(t, targetOwner, names["backupUUID"])}
	case id == "deleteForm":
		return map[string]string{"formUUID": targetOwner.Create("/forms", `{"name": "to go"}`)}
	case id == "orderFields":
		form := targetOwner.Create("/forms", `{"name": "in order"}`)
		return map[string]string{
			"formUUID": form, "fieldUUID": targetOwner.Create("/forms/"+form+"/fields", rights["createField"].body),
		}
	case id == "deleteField":
		return map[string]string{"fieldUUID": targetOwner.Create("/forms/"+form+"/fields", rights["createField"].body)}
	case id == "deleteResponse", id == "updateResponse":
		partial := targetOwner.Post("/forms/"+form+"/responses", `{"answers": {}, "partial": true}`).Want(201)
		return map[string]string{
			"responseUUID": partial.Get("uuid").(string), "token": partial.Metadata("token").(string),
		}
	case id == "deleteJWTKey":
		// The number of JWT keys is limited.
		targetOwner.Exec(`delete from platform.project_jwt_keys where project_uuid = $1`, targetOwner.Project)
		return map[string]string{
			"jwtKeyUUID": targetOwner.Create("/projects/"+targetOwner.Project+"/jwt-keys",
				strings.ReplaceAll(rights["createJWTKey"].body, "{n}", "to go "+n)),
		}
	case want == 200 &&
		slices.Contains([]string{"deleteProject", "restoreProject", "pauseProject", "resumeProject"}, id):
		prepareProject(targetOwner, id, names["spareUUID"])
		return map[string]string{"projectUUID": names["spareUUID"]}
	}

	return nil
}

// prepareProject brings a project from any state to the one that the operation requires.
func prepareProject(targetOwner *apitest.API, id, project string) {
	path := "/projects/" + project
	switch id {
	case "restoreProject":
		targetOwner.Delete(path).Want(200)
	case "resumeProject":
		targetOwner.Post(path+"/pause", "").Want(200)
	default:
		targetOwner.Post(path+"/restore", "") // refused unless it is deleted
		targetOwner.Post(path+"/resume", "")  // refused unless it is paused
	}
}

// aimed reports whether the operation names an entity. The other operations have the same response
// for every target.
func (o operation) aimed(r right) bool {
	return o.header || strings.Contains(o.path, "{") || strings.Contains(r.body, "{organization}") ||
		strings.Contains(r.body, "{email}")
}

// want returns the expected status.
func (o operation) want(r right, v matrixCaller, at target) int {
	role := v.own
	switch {
	case at.name == "theirs":
		role = v.theirs
	case at.name == "absent" && !(o.header && o.thing): // the project itself
		role = 0
	}

	done := o.first(200, 201)
	switch o.id {
	case "createBackup", "undoRestore", // the database replaced by the restore is missing
		"restoreBackup", "verifyBackup": // the backup failed
		done = 409
	case "connectDatabase": // without the Upgrade header
		done = 400
	case "importBackup", "diffMigrations", "createExtension": // invalid body; extension not allowed
		done = 422
	}

	switch {
	case r.minRole == anyone:
		return done
	case r.minRole == administrator && o.id != "updateQuota" && o.id != "updateEdgeFunctionLimits" &&
		o.id != "updateRealtimeLimits":
		// an operation in a project
		return o.wantOfAdministrator(v, at, done)
	case v.name == "anonymous" && o.bearer:
		return 401
	case o.id == "deleteUser" && v.name != "administrator":
		return 403
	case o.id == "deleteUser" && at.name == "absent":
		return 404
	case o.id == "deleteSession", o.id == "deleteToken":
		if at.name == "absent" || v.api.User != at.names["userUUID"] {
			return 404
		}
		return done
	case o.id == "updateUser":
		if at.name == "absent" || (v.api.User != at.names["userUUID"] && v.name != "administrator") {
			return 401
		}
		return done
	case r.minRole == signedIn:
		return done
	case role == 0 && o.id == "createProject":
		return 422
	case role == 0 && o.header:
		return 401
	case role == 0:
		return o.first(404, 400)
	case o.id == "leaveOrganization" && role < 3: // an administrator is no member, the owner is the last one
		return map[int]int{1: 404, 2: 409}[role]
	case role > r.minRole:
		return o.first(403, 401)
	case at.name == "mixed" || at.name == "absent":
		return o.first(404, 400)
	}

	return done
}

var identifier = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|\bf[0-9]+\b|\b(absent|secret)\b`)

// wantAlike fails the test if two refusals with the same status, for another user's entity and for
// a missing one, differ in more than IDs.
func wantAlike(t *testing.T, o operation, v matrixCaller, another, absent *apitest.Reply) {
	t.Helper()

	if another.Status < 400 || another.Status != absent.Status {
		return
	}

	got, want := string(identifier.ReplaceAll(another.Body, nil)), string(identifier.ReplaceAll(absent.Body, nil))
	if got != want {
		t.Errorf("%s by %s: got\n%s\nfor another user's entity and\n%s\nfor a missing one", o.id, v.name,
			another.Body, absent.Body)
	}
}
