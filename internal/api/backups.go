package api

import (
	"context"
	"net/http"
	"time"

	"github.com/google/uuid"

	"socle/internal/platform"
	"socle/internal/tenant"
)

func (s *Server) registerBackups() {
	within(s, createBackup, s.createBackup, nil)
	within(s, getBackup, s.getBackup, nil)
	within(s, listBackups, s.listBackups, nil)
	within(s, deleteBackup, s.deleteBackup, nil)
	within(s, verifyBackup, s.verifyBackup, nil)
	within(s, getBackupSchedule, s.getBackupSchedule, nil)
	within(s, updateBackupSchedule, s.updateBackupSchedule, nil)
	within(s, deleteBackupSchedule, s.deleteBackupSchedule, nil)
}

var createBackup = Operation{
	ID: "createBackup", Method: "POST", Path: "/backups", Summary: "Back a project up",
	Access: project(platform.Developer), Errors: createErrors,
	Notes: "Answers at once with a pending backup, which is made in the background. One at a time for each project.",
}

type createBackupInput struct {
	Body struct{ ProjectInBody }
}

func (s *Server) createBackup(ctx context.Context, p *tenant.Project, _ *createBackupInput) (platform.Backup, error) {
	return s.jobs.CreateBackup(ctx, p.UUID, caller(ctx).User)
}

var getBackup = Operation{
	ID: "getBackup", Method: "GET", Path: "/backups/{backupUUID}", Summary: "Get a backup",
	Access: project(platform.Viewer), Errors: specifiedErrors,
}

type getBackupInput struct {
	UUID uuid.UUID `path:"backupUUID" format:"uuid"`
}

// backupMetadata has the fields that the specified Backup lacks.
type backupMetadata struct {
	Size       *int64     `json:"size" nullable:"true" doc:"Bytes of the dump, as it is kept; null until it is completed."`
	Origin     string     `json:"origin" enum:"made,imported" doc:"Whether it was made here, or came from elsewhere."`
	TriedAt    *time.Time `json:"triedAt" nullable:"true" doc:"When it was last restored into a database of its own to see whether it can be; null if it never was."`
	ProvenAt   *time.Time `json:"provenAt" nullable:"true" doc:"When that was last done and it was found to be whole; null if it never was."`
	ProofError string     `json:"proofError" doc:"Why it could not be restored when that was last tried; empty if it could."`
	Scheduled  bool       `json:"scheduled" doc:"Whether the project's schedule made it, and removes it when its rules don't keep it."`
	Before     *string    `json:"before" nullable:"true" doc:"The operation that waited for it, since the project has backupBeforeDestructive; null if none did. Such a backup is kept for 30 days at least."`
	WaitingFor string     `json:"waitingFor" doc:"What it waits for while it is pending or running; empty if it does not wait."`
	Warnings   []string   `json:"warnings" doc:"What a restore will not bring back."`
}

type backupAnswer = Answer[platform.Backup, backupMetadata]

func answerBackup(b platform.Backup) backupAnswer {
	if b.Status != "pending" && b.Status != "running" {
		b.WaitingFor = ""
	}

	return backupAnswer{
		Content: b, Metadata: backupMetadata{
			b.Size, b.Origin, b.TriedAt, b.ProvenAt, b.ProofError, b.Scheduled, b.MadeBefore, b.WaitingFor, b.Warnings,
		},
	}
}

func (s *Server) getBackup(ctx context.Context, p *tenant.Project, in *getBackupInput) (backupAnswer, error) {
	b, err := s.platform.GetBackup(ctx, p.UUID, in.UUID)
	return answerBackup(b), err
}

var listBackups = Operation{
	ID: "listBackups", Method: "GET", Path: "/backups", Summary: "List backups",
	Access: project(platform.Viewer), Errors: []int{400, 401, 500},
}

type listBackupsInput struct {
	PageQuery
	Sort string `query:"sort" enum:"createdAt,completedAt" default:"createdAt"`
}

func (s *Server) listBackups(
	ctx context.Context, p *tenant.Project, in *listBackupsInput,
) (Answer[[]platform.Backup, PageMetadata], error) {
	page := in.page(in.Sort)
	backups, total, err := s.platform.ListBackups(ctx, p.UUID, page)
	return listOf(backups, page, total), err
}

var deleteBackup = Operation{
	ID: "deleteBackup", Method: "DELETE", Path: "/backups/{backupUUID}", Summary: "Delete a backup",
	Access: project(platform.Admin), Errors: []int{400, 401, 403, 404, 409, 500},
	Notes: "It can't be restored any more from now on. What is kept of it is removed in the background, but for bytes of files that other backups hold too; then it is gone.",
}

func (s *Server) deleteBackup(ctx context.Context, p *tenant.Project, in *getBackupInput) (platform.Backup, error) {
	return s.platform.DeleteBackup(ctx, p.UUID, in.UUID)
}

var verifyBackup = Operation{
	ID: "verifyBackup", Method: "POST", Path: "/backups/{backupUUID}/verify", Summary: "Prove a backup now",
	Access: project(platform.Developer), Errors: ddlDeleteErrors, Success: http.StatusOK,
	Notes: "It is restored into a database of its own, in the background, and that is dropped. `triedAt` then says when, `provenAt` or `proofError` what came of it.",
}

func (s *Server) verifyBackup(ctx context.Context, p *tenant.Project, in *getBackupInput) (backupAnswer, error) {
	b, err := s.jobs.VerifyBackup(ctx, p.UUID, in.UUID)
	return answerBackup(b), err
}

var getBackupSchedule = Operation{
	ID: "getBackupSchedule", Method: "GET",
	Path: "/projects/{projectUUID}/backup-schedule", Summary: "Get when backups of a project are made",
	Access: projectInPath(platform.Viewer), Errors: memberErrors,
}

func (s *Server) getBackupSchedule(
	ctx context.Context, p *tenant.Project, _ *projectInput,
) (platform.BackupSchedule, error) {
	return s.platform.GetBackupSchedule(ctx, p.UUID)
}

var updateBackupSchedule = Operation{
	ID: "updateBackupSchedule", Method: "PUT",
	Path: "/projects/{projectUUID}/backup-schedule", Summary: "Change when backups of a project are made",
	Access: projectInPath(platform.Admin), Errors: []int{400, 401, 403, 404, 422, 500},
	Notes: "Makes the schedule if there is none; then `cron` is required. What the body does not name stays as it is. Of the backups that the schedule makes, those stay that one of the four rules keeps, " +
		"and the last one that was proven; if all four are 0, all stay. Backups that someone asked for stay until they are deleted.",
}

type updateBackupScheduleInput struct {
	Project uuid.UUID `path:"projectUUID" format:"uuid"`
	Body    struct {
		Cron           *string `json:"cron,omitempty" minLength:"1" maxLength:"200" doc:"Five fields: minute, hour, day of the month, month, day of the week."`
		Timezone       *string `json:"timezone,omitempty" minLength:"1" maxLength:"100" doc:"Of the cron expression and of what is a day, a week and a month: a name such as Europe/Berlin. UTC unless it is given."`
		KeepLast       *int    `json:"keep_last,omitempty" minimum:"0" maximum:"1000" doc:"So many of the newest backups are kept; 3 unless it is given."`
		KeepDaily      *int    `json:"keep_daily,omitempty" minimum:"0" maximum:"1000" doc:"The newest backup of each of so many days that have one is kept; 7 unless it is given."`
		KeepWeekly     *int    `json:"keep_weekly,omitempty" minimum:"0" maximum:"1000" doc:"The same of weeks, which begin on Monday; 4 unless it is given."`
		KeepMonthly    *int    `json:"keep_monthly,omitempty" minimum:"0" maximum:"1000" doc:"The same of months; 6 unless it is given."`
		Prove          *bool   `json:"prove,omitempty" doc:"Whether each backup of the project is proven when it was made; true unless it is given."`
		ProveEveryDays *int    `json:"prove_every_days,omitempty" minimum:"0" maximum:"365" doc:"After so many days the newest backup is proven again; 0 for never, 7 unless it is given."`
	}
}

func (s *Server) updateBackupSchedule(
	ctx context.Context, p *tenant.Project, in *updateBackupScheduleInput,
) (platform.BackupSchedule, error) {
	return s.platform.UpdateBackupSchedule(ctx, p.UUID, caller(ctx).User, platform.BackupScheduleUpdate(in.Body))
}

var deleteBackupSchedule = Operation{
	ID: "deleteBackupSchedule", Method: "DELETE",
	Path: "/projects/{projectUUID}/backup-schedule", Summary: "Have no more backups of a project made by themselves",
	Access: projectInPath(platform.Admin), Errors: restrictedErrors,
	Notes: "The backups that there are stay until they are deleted.",
}

func (s *Server) deleteBackupSchedule(
	ctx context.Context, p *tenant.Project, _ *projectInput,
) (platform.BackupSchedule, error) {
	return s.platform.DeleteBackupSchedule(ctx, p.UUID)
}
