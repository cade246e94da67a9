package function

import (
	"cmp"
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/projectdb"
)

// Limits bound the functions of a project.
type Limits struct {
	MemoryMB        int  `json:"memoryMb" db:"memory_mb" doc:"Megabytes that a process may allocate."`
	CPUMilliseconds int  `json:"cpuMilliseconds" db:"cpu_milliseconds" doc:"Processor time a request, averaged over a process."`
	AnswerSeconds   int  `json:"answerSeconds" db:"answer_seconds" doc:"Time to the answer."`
	WallSeconds     int  `json:"wallSeconds" db:"wall_seconds" doc:"Time of a whole request."`
	Concurrency     int  `json:"concurrency" doc:"Requests that a process works on."`
	BodyMB          int  `json:"bodyMb" db:"body_mb" doc:"Megabytes of a request's body."`
	Processes       int  `json:"processes" doc:"Processes at a time on each server."`
	MailPorts       bool `json:"mailPorts" db:"mail_ports" doc:"Functions reach ports 25, 465 and 587 of other hosts."`
}

// defaultLimits are those of a project whose administrator has set none.
var defaultLimits = Limits{MemoryMB: 256, CPUMilliseconds: 2000, AnswerSeconds: 150, WallSeconds: 400, Concurrency: 64,
	BodyMB: 20, Processes: maxProcesses / 4}

// Answer returns the time to the answer.
func (l Limits) Answer() time.Duration { return time.Duration(l.AnswerSeconds) * time.Second }

// Wall returns the time of a whole request.
func (l Limits) Wall() time.Duration { return time.Duration(l.WallSeconds) * time.Second }

// Body returns the bytes of a request's body.
func (l Limits) Body() int64 { return int64(l.BodyMB) << 20 }

// withDefaults returns the limits that hold where some are set.
func (l Limits) withDefaults() Limits {
	d := defaultLimits
	return Limits{
		MemoryMB: cmp.Or(l.MemoryMB, d.MemoryMB), CPUMilliseconds: cmp.Or(l.CPUMilliseconds, d.CPUMilliseconds),
		AnswerSeconds: cmp.Or(l.AnswerSeconds, d.AnswerSeconds), WallSeconds: cmp.Or(l.WallSeconds, d.WallSeconds),
		Concurrency: cmp.Or(l.Concurrency, d.Concurrency), BodyMB: cmp.Or(l.BodyMB, d.BodyMB),
		Processes: cmp.Or(l.Processes, d.Processes), MailPorts: l.MailPorts,
	}
}

// limitColumns read the limits that are set, 0 for others, of an optional row l.
const limitColumns = ` coalesce(l.memory_mb, 0) as memory_mb, coalesce(l.cpu_milliseconds, 0) as cpu_milliseconds,
	coalesce(l.answer_seconds, 0) as answer_seconds, coalesce(l.wall_seconds, 0) as wall_seconds,
	coalesce(l.concurrency, 0) as concurrency, coalesce(l.body_mb, 0) as body_mb, coalesce(l.processes, 0) as processes,
	coalesce(l.mail_ports, false) as mail_ports `

// GetLimits returns the limits of a project's functions.
func GetLimits(ctx context.Context, q pg.Querier) (Limits, error) {
	l, err := pg.One[Limits](ctx, q, `select`+limitColumns+`from (select) one left join socle.edge_function_limits l on true`,
		pgx.StrictNamedArgs{})
	return l.withDefaults(), err
}

// LimitChange has the limits to set. Nil ones stay unchanged.
type LimitChange struct {
	MemoryMB, CPUMilliseconds, AnswerSeconds, WallSeconds, Concurrency, BodyMB, Processes *int
	MailPorts                                                                             *bool
}

// UpdateLimits changes the limits of a project's functions. Processes end as soon as they have
// answered; others begin under the new limits, on other servers within a second.
func (s *Service) UpdateLimits(ctx context.Context, p *projectdb.Project, c LimitChange) (Limits, error) {
	defer s.Forget(p.UUID)

	return pg.InTxValue(ctx, p.InTx, func(tx pgx.Tx) (Limits, error) {
		_, err := pg.Exec(ctx, tx, `
			insert into socle.edge_function_limits as l (memory_mb, cpu_milliseconds, answer_seconds, wall_seconds,
				concurrency, body_mb, processes, mail_ports)
			values (@memory, @cpu, @answer, @wall, @concurrency, @body, @processes, @mail)
			on conflict (singleton) do update set memory_mb = coalesce(@memory, l.memory_mb),
				cpu_milliseconds = coalesce(@cpu, l.cpu_milliseconds), answer_seconds = coalesce(@answer, l.answer_seconds),
				wall_seconds = coalesce(@wall, l.wall_seconds), concurrency = coalesce(@concurrency, l.concurrency),
				body_mb = coalesce(@body, l.body_mb), processes = coalesce(@processes, l.processes),
				mail_ports = coalesce(@mail, l.mail_ports)`,
			pgx.StrictNamedArgs{"memory": c.MemoryMB, "cpu": c.CPUMilliseconds, "answer": c.AnswerSeconds,
				"wall": c.WallSeconds, "concurrency": c.Concurrency, "body": c.BodyMB, "processes": c.Processes,
				"mail": c.MailPorts})
		if err != nil {
			return Limits{}, err
		}

		return GetLimits(ctx, tx)
	})
}
