package lifecycle

import (
	"context"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/namespace"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgcluster"
	"github.com/socle-dev/socle/internal/projectdb"
)

// handOver gives tables in the platform's schemas, and the publication, to the project logins that
// own them.
func (d Databases) handOver(ctx context.Context, conn *pgx.Conn, project uuid.UUID) error {
	if err := d.handOverAuth(ctx, conn, project); err != nil {
		return err
	}
	if err := d.handOverStorage(ctx, conn, project); err != nil {
		return err
	}

	if err := d.handOverServices(ctx, conn, project); err != nil {
		return err
	}
	if err := d.Registry.CreateVaultKey(ctx, conn, project); err != nil {
		return err
	}

	if err := d.handOverEvents(ctx, conn, project); err != nil {
		return err
	}

	return d.handOverPublication(ctx, conn, project)
}

// handOverEvents gives the functions that capture changes to the project's login for requests,
// which may do least: they run casts to json that the owner has created. It does nothing before the
// migration that creates them.
func (d Databases) handOverEvents(ctx context.Context, conn *pgx.Conn, project uuid.UUID) error {
	exists, err := pg.Value[bool](ctx, conn, `select to_regclass('socle.events') is not null`)
	if err != nil || !exists {
		return err
	}

	request := pg.Quote(d.Registry.Login(project, pgcluster.Request))
	statements := []string{
		"grant insert (relation, operation, record, old, size, oversized) on socle.events to " + request,
		"grant usage on sequence socle.event_seq to " + request,
		"grant execute on function socle.small_members(json) to " + request,
	}
	for _, kind := range []string{"insert", "update", "delete", "truncate"} {
		statements = append(statements, "alter function socle.capture_"+kind+"() owner to "+request)
	}

	return pgcluster.ExecUntriggered(ctx, conn, statements)
}

// handOverServices grants the functions for Supabase's services to the owner and to the auth login,
// whose triggers call them. It gives realtime.messages to the owner, for its policies. It does
// nothing before the migration that creates them.
func (d Databases) handOverServices(ctx context.Context, conn *pgx.Conn, project uuid.UUID) error {
	exists, err := pg.Value[bool](ctx, conn, `select to_regclass('realtime.messages') is not null`)
	if err != nil || !exists {
		return err
	}

	schemas, err := pg.Values[string](ctx, conn, `
		select nspname::text from pg_namespace where nspname = any(@schemas) and nspowner = (
			select nspowner from pg_namespace where nspname = 'socle')`,
		pgx.StrictNamedArgs{"schemas": namespace.Services})
	if err != nil {
		return err
	}

	developer := pg.Quote(d.Registry.OwnerLogin(project))
	both := developer + ", " + pg.Quote(d.Registry.Login(project, pgcluster.Auth))
	statements := []string{
		"alter table realtime.messages owner to " + developer,
		"grant usage on schema realtime to " + both,
		"grant execute on function realtime.topic(), realtime.send(jsonb, text, text, boolean), " +
			"realtime.broadcast_changes(text, text, text, text, text, record, record, text) to " + both,
	}
	for _, schema := range schemas {
		if schema == "vault" {
			statements = append(statements, "grant usage on schema vault to "+developer,
				"grant select, insert, update, delete, truncate on vault.secrets to "+developer, // its trigger refuses UPDATE
				"grant select on vault.decrypted_secrets to "+developer,
				"grant execute on function vault.create_secret(text, text, text, uuid), "+
					"vault.update_secret(uuid, text, text, text, uuid), vault.decrypt(uuid, text, text, bytea, uuid) to "+developer)
			continue
		}

		grantees := developer
		if schema == "net" || schema == "supabase_functions" {
			grantees = both
		}
		statements = append(statements, "grant usage on schema "+schema+" to "+grantees,
			"grant execute on all functions in schema "+schema+" to "+grantees)
	}
	if slices.Contains(schemas, "pgmq") {
		statements = append(statements, "grant create on schema pgmq to "+developer,
			"grant select, insert, delete on pgmq.meta to "+developer)
	}
	if slices.Contains(schemas, "cron") {
		columns, err := scheduleColumns(ctx, conn)
		if err != nil {
			return err
		}

		statements = append(statements, "grant select, delete, update ("+columns+") on cron.job to "+developer,
			"grant select, delete on cron.job_run_details to "+developer)
	}

	delivered, err := d.handOverOutbox(ctx, conn, project, slices.Contains(schemas, "net"))
	if err != nil {
		return err
	}

	return pgcluster.ExecUntriggered(ctx, conn, append(statements, delivered...))
}

// handOverOutbox returns the statements that grant what SQL leaves for the server: messages since
// migration 58, and requests since migration 57 if the schema net is the platform's.
func (d Databases) handOverOutbox(
	ctx context.Context, conn *pgx.Conn, project uuid.UUID, hasNet bool,
) (statements []string, err error) {
	isCurrent, err := pg.Value[bool](ctx, conn, `select to_regclass('socle.unsent_messages') is not null`)
	if err != nil || !isCurrent {
		return nil, err
	}

	developer := pg.Quote(d.Registry.OwnerLogin(project))
	auth := pg.Quote(d.Registry.Login(project, pgcluster.Auth))
	statements = []string{
		"grant execute on function realtime.put_message(text, text, boolean, jsonb, bytea), " +
			"realtime.send_binary(bytea, text, text, boolean) to " + developer + ", " + auth,
		"grant insert on realtime.messages to " + auth,
	}
	if hasNet {
		statements = append(statements, "grant select, delete on net.http_request_queue, net._http_response to "+developer)
	}

	return statements, nil
}

// scheduleColumns returns the columns of a schedule that the owner may change. Databases of earlier
// releases have only the first.
func scheduleColumns(ctx context.Context, conn *pgx.Conn) (string, error) {
	columns, err := pg.Values[string](ctx, conn, `
		select attname::text from pg_attribute
		where attrelid = to_regclass('cron.job') and attname = any('{active,timezone,overlap,timeout_seconds}')
		order by attnum`)
	return strings.Join(columns, ", "), err
}

// handOverPublication gives the platform's publication to the project's owner. The owner may have
// dropped it, or created another one with this name.
func (d Databases) handOverPublication(ctx context.Context, conn *pgx.Conn, project uuid.UUID) error {
	isOurs, err := pg.Value[bool](ctx, conn, `
		select exists (select from pg_publication where pubname = @name and pubowner = current_user::regrole)`,
		pgx.StrictNamedArgs{"name": projectdb.Publication})
	if err != nil || !isOurs {
		return err
	}

	return pgcluster.ExecUntriggered(ctx, conn, []string{
		"alter publication " + projectdb.Publication + " owner to " + pg.Quote(d.Registry.OwnerLogin(project)),
	})
}

// handOverStorage gives storage.buckets and storage.objects to the project's owner. It does nothing
// before the migration that creates them.
func (d Databases) handOverStorage(ctx context.Context, conn *pgx.Conn, project uuid.UUID) error {
	type table struct {
		Name  string
		Owned bool
	}
	role := d.Registry.OwnerLogin(project)
	tables, err := pg.All[table](ctx, conn, `
		select c.relname::text as name, c.relowner = (select oid from pg_roles where rolname = @role) as owned
		from pg_class c where c.relnamespace = to_regnamespace('storage') and c.relname = any(@tables)`,
		pgx.StrictNamedArgs{"role": role, "tables": projectdb.PolicyTables})
	if err != nil || len(tables) == 0 {
		return err
	}

	developer := pg.Quote(role)
	statements := []string{
		"grant usage on schema storage to " + developer,
		"grant execute on function storage.foldername(text), storage.filename(text), storage.extension(text), " +
			"storage.object_metadata(text, bigint, bytea, text) to " + developer,
	}

	bySQL, err := pg.Value[bool](ctx, conn, `
		select exists (select from pg_proc where pronamespace = to_regnamespace('storage') and proname = 'put_bucket')`)
	if err != nil {
		return err
	}
	if bySQL { // since migration 46
		statements = append(statements, "grant execute on function storage.check_bucket(text, text, bigint, text[]), "+
			"storage.put_bucket(storage.buckets, boolean), storage.delete_bucket(text) to "+developer)
	}

	hasTrigger, err := pg.Value[bool](ctx, conn, `select to_regproc('storage.update_updated_at_column') is not null`)
	if err != nil {
		return err
	}
	if hasTrigger { // since migration 63
		statements = append(statements, "grant execute on function storage.update_updated_at_column() to "+developer)
	}

	for _, t := range slices.DeleteFunc(tables, func(t table) bool { return t.Owned }) {
		statements = append(statements, "alter table "+pg.Quote("storage", t.Name)+" owner to "+developer)
	}

	return pgcluster.ExecUntriggered(ctx, conn, statements)
}

// visibleUserColumns are the columns in auth.users that the owner may read while the table has
// password hashes, which is before migration 50: all but hashes and tokens.
var visibleUserColumns = []string{
	"instance_id", "id", "aud", "role", "email", "email_confirmed_at", "invited_at", "confirmation_sent_at",
	"recovery_sent_at", "email_change", "email_change_sent_at", "last_sign_in_at", "raw_app_meta_data",
	"raw_user_meta_data", "is_super_admin", "created_at", "updated_at", "phone", "phone_confirmed_at", "phone_change",
	"phone_change_sent_at", "confirmed_at", "email_change_confirm_status", "banned_until", "reauthentication_sent_at",
	"is_sso_user", "deleted_at", "is_anonymous",
}

// passwords is the table in schema auth that only the platform's login reads.
const passwords = "passwords"

// handOverAuth gives the tables in schema auth, but for the password hashes, to the project's auth
// login, and grants the owner its part: foreign keys to auth.users (id), triggers on it, its rows,
// whose changes platform triggers check, and the functions for policies. It does nothing before the
// migration that creates the tables.
func (d Databases) handOverAuth(ctx context.Context, conn *pgx.Conn, project uuid.UUID) error {
	role := d.Registry.Login(project, pgcluster.Auth)
	type table struct {
		Name  string
		Owned bool
	}
	tables, err := pg.All[table](ctx, conn, `
		select c.relname as name, c.relowner = (select oid from pg_roles where rolname = @role) as owned
		from pg_class c where c.relnamespace = to_regnamespace('auth') and c.relkind = 'r'`,
		pgx.StrictNamedArgs{"role": role})
	if err != nil || len(tables) == 0 {
		return err
	}

	var statements []string
	for _, t := range tables {
		if !t.Owned && t.Name != passwords {
			statements = append(statements, "alter table "+pg.Quote("auth", t.Name)+" owner to "+pg.Quote(role))
		}
	}

	bySQL, err := hasAuthFunction(ctx, conn, "check_user")
	if err != nil {
		return err
	}
	inBulk, err := hasAuthFunction(ctx, conn, "follow_users")
	if err != nil {
		return err
	}

	developer := pg.Quote(d.Registry.OwnerLogin(project))
	visible := "select (" + strings.Join(visibleUserColumns, ", ") + ")"
	if slices.ContainsFunc(tables, func(t table) bool { return t.Name == passwords }) { // since migration 50
		visible = "select"
		statements = append(statements, "grant execute on function auth.store_password(text) to "+pg.Quote(role))
	}
	if bySQL { // since migration 47
		statements = append(statements,
			"grant insert, update, delete on auth.users to "+developer,
			"grant select, insert on auth.identities to "+developer,
			"grant execute on function auth.is_platform(name, oid), auth.clean_email(text), auth.clean_phone(text), "+
				"auth.check_hash(text), auth.clean_metadata(text, jsonb), auth.check_times(auth.users), "+
				"auth.follow_user(uuid, boolean, boolean) to "+developer,
			"grant execute on function auth.is_platform(name, oid) to anon, authenticated, service_role, "+pg.Quote(role))
	}
	if inBulk { // since migration 67
		statements = append(statements, "grant execute on function auth.follow_users(uuid[], uuid[], uuid[]), "+
			"auth.refuse_written(uuid) to "+developer)
	}

	return pgcluster.ExecUntriggered(ctx, conn, append(statements,
		"grant usage on schema auth to "+pg.Quote(role)+", "+developer,
		"grant references (id), "+visible+", trigger on auth.users to "+developer,
		"grant execute on function auth.jwt(), auth.uid(), auth.role(), auth.email() to "+developer,
		"grant usage on schema "+pg.Quote(projectdb.Schema)+" to "+pg.Quote(role),
		"grant execute on function socle.write_audit(text, bytea), socle.lock_audit_entries() to "+pg.Quote(role),
	))
}

// hasAuthFunction reports whether a database is past the migration that creates a function in
// schema auth.
func hasAuthFunction(ctx context.Context, conn *pgx.Conn, name string) (bool, error) {
	return pg.Value[bool](ctx, conn, `
		select exists (select from pg_proc where pronamespace = to_regnamespace('auth') and proname = @name)`,
		pgx.StrictNamedArgs{"name": name})
}
