package platform

import (
	"context"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
)

// Settings are the settings that an administrator can change at run time. Each use reads them from
// the database, so a change applies to the next request on every server.
type Settings struct {
	SignUp                  bool  // anyone may create an account
	OrganizationsPerUser    int64 // owned by a user
	MembersPerOrganization  int64 // invitations included
	ProjectsPerOrganization int64
	ProjectsPerUser         int64 // in all organizations that count to a user
	MaxUploadSize           int64 // bytes
	DeletedProjectDays      int64 // retention for deleted projects
	RequestDays             int64 // request log retention
	RequestBytes            int64 // request log limit per project and day
	MaxImportedBackup       int64 // whole content in bytes
	MaxRestoreSeconds       int64 // base for restoring a database, plus as much per GiB in the dump
}

// DeletedKept returns the retention for deleted projects.
func (s Settings) DeletedKept() time.Duration {
	return time.Duration(s.DeletedProjectDays) * 24 * time.Hour
}

// RequestsKept returns the request log retention.
func (s Settings) RequestsKept() time.Duration { return time.Duration(s.RequestDays) * 24 * time.Hour }

// RestoreTimeout returns the timeout for restoring a dump with this size in bytes.
func (s Settings) RestoreTimeout(dump int64) time.Duration {
	return time.Duration(s.MaxRestoreSeconds) *
		(time.Second + time.Duration(float64(time.Second)*float64(dump)/(1<<30)))
}

// DefaultRequestBytes is the default for Settings.RequestBytes.
const DefaultRequestBytes = 100 << 20

// defaultSettings holds the defaults.
var defaultSettings = Settings{SignUp: true, OrganizationsPerUser: 20, MembersPerOrganization: 1000,
	ProjectsPerOrganization: 100, ProjectsPerUser: 100, MaxUploadSize: 5 << 30,
	DeletedProjectDays: 7, RequestDays: 7, RequestBytes: DefaultRequestBytes,
	MaxImportedBackup: 100 << 30, MaxRestoreSeconds: 3600}

// declaration declares a setting: a boolean, or an integer with a range.
type declaration struct {
	name, meaning string
	flag          func(*Settings) *bool  // nil: an integer
	number        func(*Settings) *int64 // nil: a boolean
	min, max      int64                  // an integer's range
}

// declarations declares all run-time settings.
var declarations = []declaration{
	{name: "sign_up",
		meaning: "Whether anyone may create an account; otherwise only administrators and invited users.",
		flag:    func(s *Settings) *bool { return &s.SignUp }},
	{name: "organizations_per_user",
		meaning: "Maximum number of organizations that a user owns, including the one created with the account.",
		min:     1, max: 100_000,
		number: func(s *Settings) *int64 { return &s.OrganizationsPerUser }},
	{name: "members_per_organization", meaning: "Maximum number of members of an organization, including invitations.",
		min: 1, max: 100_000,
		number: func(s *Settings) *int64 { return &s.MembersPerOrganization }},
	{name: "projects_per_organization", meaning: "Maximum number of projects of an organization.", min: 1, max: 100_000,
		number: func(s *Settings) *int64 { return &s.ProjectsPerOrganization }},
	{name: "projects_per_user",
		meaning: "Maximum number of projects in all organizations of which a user is the owner of longest standing. " +
			"Administrators have no such limit.",
		min: 1, max: 1_000_000,
		number: func(s *Settings) *int64 { return &s.ProjectsPerUser }},
	{name: "max_upload_size",
		meaning: "Maximum size of an uploaded file in bytes, regardless of its container's limit.",
		min:     1, max: 5 << 30,
		number: func(s *Settings) *int64 { return &s.MaxUploadSize }},
	{name: "deleted_project_days",
		meaning: "Days in which a deleted project can be restored before it is purged with its backups. " +
			"Applies to projects already deleted.",
		min: 1, max: 3650,
		number: func(s *Settings) *int64 { return &s.DeletedProjectDays }},
	{name: "request_days",
		meaning: "Retention of the request log in days. The audit log keeps all changes regardless.",
		min:     1, max: 3650,
		number: func(s *Settings) *int64 { return &s.RequestDays }},
	{name: "request_bytes",
		meaning: "Bytes that a server writes to the request log of one project in a day. Of a project with more " +
			"requests it leaves out successful ones first.",
		min: 1 << 20, max: 1 << 40,
		number: func(s *Settings) *int64 { return &s.RequestBytes }},
	{name: "max_imported_backup", meaning: "Maximum size of the content of an imported backup in bytes.",
		min: 1, max: 100 << 40,
		number: func(s *Settings) *int64 { return &s.MaxImportedBackup }},
	{name: "max_restore_seconds",
		meaning: "Timeout in seconds for restoring a database in a restore or a proof, plus the same for each GiB of the dump.",
		min:     1, max: 30 * 24 * 3600, number: func(s *Settings) *int64 { return &s.MaxRestoreSeconds }},
}

// Setting is a setting in the API.
type Setting struct {
	Name      string     `json:"name"`
	Type      string     `json:"type" enum:"boolean,integer"`
	Value     any        `json:"value" doc:"Current value: a boolean or an integer."`
	Default   any        `json:"default" doc:"Default value. For sign_up it comes from the server's environment."`
	Minimum   *int64     `json:"minimum" nullable:"true"`
	Maximum   *int64     `json:"maximum" nullable:"true"`
	Meaning   string     `json:"meaning"`
	UpdatedAt *time.Time `json:"updatedAt" nullable:"true" doc:"When it was set; null: the default applies."`
	UpdatedBy *uuid.UUID `json:"updatedBy" nullable:"true"`
}

// settingRow is a row in platform.settings. Unknown names and invalid values are ignored.
type settingRow struct {
	Name, Value string
	UpdatedAt   time.Time
	UpdatedBy   uuid.UUID
}

// MaxUploadSize returns the largest file that anyone may upload, in bytes.
func (s *Store) MaxUploadSize(ctx context.Context) (int64, error) {
	settings, err := s.Settings(ctx)
	return settings.MaxUploadSize, err
}

// Settings returns the settings in effect.
func (s *Store) Settings(ctx context.Context) (Settings, error) {
	rows, err := s.storedSettings(ctx)
	if err != nil {
		return Settings{}, err
	}

	settings := s.defaults
	for _, d := range declarations {
		if row, ok := rows[d.name]; ok {
			_ = d.parse(&settings, row.Value) // an invalid value leaves the default
		}
	}

	return settings, nil
}

// ListSettings returns all settings in declaration order.
func (s *Store) ListSettings(ctx context.Context) ([]Setting, error) {
	rows, err := s.storedSettings(ctx)
	if err != nil {
		return nil, err
	}

	all := make([]Setting, len(declarations))
	for i, d := range declarations {
		row, ok := rows[d.name]
		all[i] = d.show(s.defaults, row, ok)
	}

	return all, nil
}

func (s *Store) storedSettings(ctx context.Context) (map[string]settingRow, error) {
	rows, err := pg.All[settingRow](ctx, s.q, `select name, value::text, updated_at, updated_by from platform.settings`)
	if err != nil {
		return nil, err
	}

	byName := make(map[string]settingRow, len(rows))
	for _, r := range rows {
		byName[r.Name] = r
	}

	return byName, nil
}

// CheckSetting fails with NotFound for an unknown setting.
func CheckSetting(name string) error {
	_, err := findSetting(name)
	return err
}

// UpdateSetting sets a setting to a JSON value. It fails with NotFound for an unknown setting, and
// with Unprocessable on the field value if the value is invalid.
func (s *Store) UpdateSetting(ctx context.Context, user uuid.UUID, name, value string) (Setting, error) {
	d, err := findSetting(name)
	if err != nil {
		return Setting{}, err
	}

	if err := d.parse(&Settings{}, value); err != nil {
		return Setting{}, err
	}

	row, err := pg.InTxValue(ctx, s.InTx, func(tx *Store) (settingRow, error) {
		return pg.One[settingRow](ctx, tx.q, `
			insert into platform.settings (name, value, updated_by) values (@name, @value::text::jsonb, @user)
			on conflict (name) do update set value = excluded.value, updated_at = now(), updated_by = excluded.updated_by
			returning name, value::text, updated_at, updated_by`,
			pgx.StrictNamedArgs{"name": name, "value": value, "user": user})
	})

	return d.show(s.defaults, row, true), err
}

// ResetSetting resets a setting to the default. It fails with NotFound for an unknown setting.
func (s *Store) ResetSetting(ctx context.Context, name string) (Setting, error) {
	d, err := findSetting(name)
	if err != nil {
		return Setting{}, err
	}

	_, err = pg.InTxValue(ctx, s.InTx, func(tx *Store) (int64, error) {
		return pg.Exec(ctx, tx.q, `delete from platform.settings where name = @name`, pgx.StrictNamedArgs{"name": name})
	})
	return d.show(s.defaults, settingRow{}, false), err
}

func findSetting(name string) (declaration, error) {
	for _, d := range declarations {
		if d.name == name {
			return d, nil
		}
	}

	return declaration{}, fault.New(fault.NotFound, "there is no such setting")
}

// parse parses a JSON value into the setting's field in s.
func (d declaration) parse(s *Settings, value string) error {
	if d.flag != nil {
		if value != "true" && value != "false" {
			return fault.OnField(fault.Unprocessable, "value", "invalid_type", "must be a boolean")
		}

		*d.flag(s) = value == "true"
		return nil
	}

	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		return fault.OnField(fault.Unprocessable, "value", "invalid_type",
			"must be an integer, written without fraction or exponent")
	}

	if n < d.min || n > d.max {
		return fault.OnField(fault.Unprocessable, "value", "out_of_range", "must be %d to %d", d.min, d.max)
	}

	*d.number(s) = n
	return nil
}

// show returns the setting with row's value, if set and valid, or with the default.
func (d declaration) show(defaults Settings, row settingRow, set bool) Setting {
	settings := defaults
	result := Setting{Name: d.name, Meaning: d.meaning, Type: "boolean"}
	if set && d.parse(&settings, row.Value) == nil {
		result.UpdatedAt, result.UpdatedBy = &row.UpdatedAt, &row.UpdatedBy
	}

	if d.flag != nil {
		result.Value, result.Default = *d.flag(&settings), *d.flag(&defaults)
		return result
	}

	result.Type, result.Minimum, result.Maximum = "integer", &d.min, &d.max
	result.Value, result.Default = *d.number(&settings), *d.number(&defaults)

	return result
}
