package backups

import (
	"context"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/backup"
	"github.com/socle-dev/socle/internal/operation"
	"github.com/socle-dev/socle/internal/projectdb"
)

func (s *Server) registerBackups(p *operation.Pipeline) {
	operation.HandleInProject(p, createBackup, s.createBackup, nil)
	operation.HandleInProject(p, getBackup, s.getBackup, nil)
	operation.HandleInProject(p, listBackups, s.listBackups, nil)
	operation.HandleInProject(p, deleteBackup, s.deleteBackup, nil)
	operation.HandleInProject(p, verifyBackup, s.verifyBackup, nil)
	operation.HandleInProject(p, getBackupSchedule, s.getBackupSchedule, nil)
	operation.HandleInProject(p, updateBackupSchedule, s.updateBackupSchedule, nil)
	operation.HandleInProject(p, deleteBackupSchedule, s.deleteBackupSchedule, nil)
}

var createBackup = operation.Operation{
	ID: "createBackup", Method: "POST", Path: "/backups", Summary: "Create a backup",
	Access: operation.Project(account.Developer), Errors: operation.CreateErrors,
	Notes: "Returns a pending backup at once; the backup runs in the background. Each project runs one backup at a " +
		"time.",
	Example: `{}`,
}

type createBackupInput struct {
	Body struct{ operation.ProjectInBody }
}

func (s *Server) createBackup(ctx context.Context, p *projectdb.Project, _ *createBackupInput) (backup.Backup, error) {
	return s.Backups.Create(ctx, p.UUID, operation.Caller(ctx).User)
}

var getBackup = operation.Operation{
	ID: "getBackup", Method: "GET", Path: "/backups/{backupUUID}", Summary: "Get a backup",
	Access: operation.Project(account.Viewer), Specified: true, Errors: operation.SpecifiedErrors,
}

type getBackupInput struct {
	UUID uuid.UUID `path:"backupUUID" format:"uuid"`
}

// backupMetadata has the fields that the specified Backup lacks.
type backupMetadata struct {
	Size       *int64           `json:"size" nullable:"true" doc:"Stored size of the dump in bytes; null until the backup is completed."`
	Origin     string           `json:"origin" enum:"made,imported" doc:"Whether the backup was made on this install or imported."`
	TriedAt    *time.Time       `json:"triedAt" nullable:"true" doc:"Time of the last attempt to prove the backup; null if none."`
	ProvenAt   *time.Time       `json:"provenAt" nullable:"true" doc:"Time of the last successful proof; null if none."`
	ProofError string           `json:"proofError" doc:"Why the last attempt to prove the backup failed; empty if it succeeded."`
	Scheduled  bool             `json:"scheduled" doc:"Whether the project's schedule made the backup. Its retention rules then apply."`
	Before     *string          `json:"before" nullable:"true" doc:"The destructive operation that this backup preceded, because of backupBeforeDestructive; null if none. Such a backup is retained for at least 30 days."`
	WaitingFor string           `json:"waitingFor" doc:"What a pending or running backup waits for; empty if nothing."`
	Warnings   []string         `json:"warnings" doc:"Contents that a restore cannot recover."`
	Missing    []backup.Missing `json:"missing" doc:"Objects that PostgreSQL did not create again when the backup was last proven, at most 100; empty if none."`
}

type backupAnswer = operation.Answer[backup.Backup, backupMetadata]

func answerBackup(b backup.Backup) backupAnswer {
	return backupAnswer{Content: b, Metadata: backupDetails(b)}
}

func backupDetails(b backup.Backup) backupMetadata {
	if b.Status != "pending" && b.Status != "running" {
		b.WaitingFor = ""
	}

	return backupMetadata{
		b.Size, b.Origin, b.TriedAt, b.ProvenAt, b.ProofError, b.Scheduled, b.MadeBefore, b.WaitingFor, b.Warnings,
		b.Missing,
	}
}

func (s *Server) getBackup(ctx context.Context, p *projectdb.Project, in *getBackupInput) (backupAnswer, error) {
	b, err := s.Backups.Get(ctx, p.UUID, in.UUID)
	return answerBackup(b), err
}

var listBackups = operation.Operation{
	ID: "listBackups", Method: "GET", Path: "/backups", Summary: "List backups",
	Access: operation.Project(account.Viewer), Errors: []int{400, 401, 500},
}

type listBackupsInput struct {
	operation.PageQuery
	Sort string `query:"sort" enum:"createdAt,completedAt" default:"createdAt"`
}

type backupsMetadata struct {
	operation.PageMetadata
	Details map[string]backupMetadata `json:"details" doc:"Metadata of the backups by their UUIDs, as of getBackup."`
}

func (s *Server) listBackups(
	ctx context.Context, p *projectdb.Project, in *listBackupsInput,
) (operation.Answer[[]backup.Backup, backupsMetadata], error) {
	page := in.By(in.Sort)
	backups, total, err := s.Backups.List(ctx, p.UUID, page)

	details := make(map[string]backupMetadata, len(backups))
	for _, b := range backups {
		details[b.UUID.String()] = backupDetails(b)
	}

	return operation.WithMetadata(backups, backupsMetadata{operation.MetadataOf(page, total), details}), err
}

var deleteBackup = operation.Operation{
	ID: "deleteBackup", Method: "DELETE", Path: "/backups/{backupUUID}", Summary: "Delete a backup",
	Access: operation.Project(account.Admin), Errors: []int{400, 401, 403, 404, 409, 500},
	Notes: "The backup can no longer be restored. Its data is removed in the background, except for bytes that " +
		"other backups share; then the backup disappears.",
}

func (s *Server) deleteBackup(ctx context.Context, p *projectdb.Project, in *getBackupInput) (backup.Backup, error) {
	return s.Backups.Delete(ctx, p.UUID, in.UUID)
}

var verifyBackup = operation.Operation{
	ID: "verifyBackup", Method: "POST", Path: "/backups/{backupUUID}/verify", Summary: "Prove a backup",
	Access: operation.Project(account.Developer), Errors: operation.DDLDeleteErrors, Success: http.StatusOK,
	Notes: "Restores the backup into a temporary database in the background. `triedAt` then has the time of the " +
		"attempt, `provenAt` or `proofError` its result.",
}

func (s *Server) verifyBackup(ctx context.Context, p *projectdb.Project, in *getBackupInput) (backupAnswer, error) {
	b, err := s.Backups.RequestProof(ctx, p.UUID, in.UUID)
	return answerBackup(b), err
}

var getBackupSchedule = operation.Operation{
	ID: "getBackupSchedule", Method: "GET",
	Path: "/projects/{projectUUID}/backup-schedule", Summary: "Get a backup schedule",
	Access: operation.ProjectInPath(account.Viewer), Errors: operation.MemberErrors,
}

func (s *Server) getBackupSchedule(
	ctx context.Context, p *projectdb.Project, _ *operation.ProjectInput,
) (backup.BackupSchedule, error) {
	return s.Backups.GetSchedule(ctx, p.UUID)
}

var updateBackupSchedule = operation.Operation{
	ID: "updateBackupSchedule", Method: "PUT",
	Path: "/projects/{projectUUID}/backup-schedule", Summary: "Create or update a backup schedule",
	Access: operation.ProjectInPath(account.Admin), Errors: []int{400, 401, 403, 404, 422, 500},
	Notes: "Creates the schedule if there is none; then `cron` is required. Omitted members stay unchanged. A " +
		"scheduled backup is retained while one of the four rules retains it; so is the last proven one. If all " +
		"four rules are 0, all are retained. Backups created on request remain until they are deleted.",
	Example: `{"cron": "0 3 * * *", "timezone": "Europe/Berlin", "keep_daily": 7, "keep_weekly": 4, "prove": true}`,
}

type updateBackupScheduleInput struct {
	Project uuid.UUID `path:"projectUUID" format:"uuid"`
	Body    struct {
		Cron           *string `json:"cron,omitempty" minLength:"1" maxLength:"200" doc:"Cron expression with five fields: minute, hour, day of the month, month, day of the week."`
		Timezone       *string `json:"timezone,omitempty" minLength:"1" maxLength:"100" doc:"Time zone of the cron expression and of the retention rules, such as Europe/Berlin. Default: UTC."`
		KeepLast       *int    `json:"keep_last,omitempty" minimum:"0" maximum:"1000" doc:"Number of newest backups to retain. Default: 3."`
		KeepDaily      *int    `json:"keep_daily,omitempty" minimum:"0" maximum:"1000" doc:"Number of days with backups whose newest backup is retained. Default: 7."`
		KeepWeekly     *int    `json:"keep_weekly,omitempty" minimum:"0" maximum:"1000" doc:"Number of weeks, starting on Monday, with backups whose newest backup is retained. Default: 4."`
		KeepMonthly    *int    `json:"keep_monthly,omitempty" minimum:"0" maximum:"1000" doc:"Number of months with backups whose newest backup is retained. Default: 6."`
		Prove          *bool   `json:"prove,omitempty" doc:"Whether to prove each backup of the project after its completion. Default: true."`
		ProveEveryDays *int    `json:"prove_every_days,omitempty" minimum:"0" maximum:"365" doc:"Days after which the newest backup is proven again; 0 for never. Default: 7."`
	}
}

func (s *Server) updateBackupSchedule(
	ctx context.Context, p *projectdb.Project, in *updateBackupScheduleInput,
) (backup.BackupSchedule, error) {
	return s.Backups.UpdateSchedule(ctx, p.UUID, operation.Caller(ctx).User, backup.ScheduleUpdate(in.Body))
}

var deleteBackupSchedule = operation.Operation{
	ID: "deleteBackupSchedule", Method: "DELETE",
	Path: "/projects/{projectUUID}/backup-schedule", Summary: "Delete a backup schedule",
	Access: operation.ProjectInPath(account.Admin), Errors: operation.RestrictedErrors,
	Notes: "Existing backups remain until they are deleted.",
}

func (s *Server) deleteBackupSchedule(
	ctx context.Context, p *projectdb.Project, _ *operation.ProjectInput,
) (backup.BackupSchedule, error) {
	return s.Backups.DeleteSchedule(ctx, p.UUID)
}
