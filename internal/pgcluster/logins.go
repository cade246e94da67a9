package projectdb

import (
	"context"

	"github.com/socle-dev/socle/internal/pg"
)

// loginSettings are the settings of a project's logins in its database that only a superuser can
// change: the size of temporary files, and messages of user code in PostgreSQL's log.
var loginSettings = []string{"temp_file_limit = '" + tempFileLimit + "'", "log_min_messages = fatal"}

// isLoginSetting is a condition on setting, a name=value of pg_db_role_setting: it is one of
// loginSettings.
const isLoginSetting = `setting ~ '^(temp_file_limit|log_min_messages)='`

// LoginSettings returns the names of the settings that an operator gave the logins of the project
// whose database q is connected to. No dump has them.
func LoginSettings(ctx context.Context, q pg.Querier) ([]string, error) {
	return pg.Values[string](ctx, q, `
		select split_part(setting, '=', 1)
		from pg_db_role_setting s
		join pg_roles r on r.oid = s.setrole and starts_with(r.rolname, current_database() || '_') and r.rolname <> current_user
		cross join unnest(s.setconfig) setting
		where (s.setdatabase = 0 or s.setdatabase = (select oid from pg_database where datname = current_database()))
			and not `+isLoginSetting+`
		order by 1`)
}
