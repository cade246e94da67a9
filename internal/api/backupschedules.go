package api

import (
	"context"

	"github.com/google/uuid"

	"socle/internal/platform"
	"socle/internal/tenant"
)

func (s *Server) registerBackupSchedules() {
	within(s, getBackupSchedule, s.getBackupSchedule, nil)
	within(s, updateBackupSchedule, s.updateBackupSchedule, nil)
	within(s, deleteBackupSchedule, s.deleteBackupSchedule, nil)
}

var getBackupSchedule = Operation{
	ID: "getBackupSchedule", Method: "GET",
	Path: "/projects/{projectUUID}/backup-schedule", Summary: "Get when backups of a project are made",
	Access: projectInPath(platform.Viewer), Errors: looking,
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
	Access: projectInPath(platform.Admin), Errors: reading,
	Notes: "The backups that there are stay until they are deleted.",
}

func (s *Server) deleteBackupSchedule(
	ctx context.Context, p *tenant.Project, _ *projectInput,
) (platform.BackupSchedule, error) {
	return s.platform.DeleteBackupSchedule(ctx, p.UUID)
}
