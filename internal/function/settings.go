package function

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/function/runtime"
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
var defaultLimits = Limits{MemoryMB: runtime.DefaultMemoryMB, CPUMilliseconds: 2000, AnswerSeconds: 150,
	WallSeconds: 400, Concurrency: 64, BodyMB: 20, Processes: maxProcesses / 4}

// Answer returns the time to the answer.
func (l Limits) Answer() time.Duration { return time.Duration(l.AnswerSeconds) * time.Second }

// Wall returns the time of a whole request.
func (l Limits) Wall() time.Duration { return time.Duration(l.WallSeconds) * time.Second }

// Body returns the bytes of a request's body.
func (l Limits) Body() int64 { return int64(l.BodyMB) << 20 }

// withDefaults returns the limits that hold where some are set, within the bounds of [LimitChange].
func (l Limits) withDefaults() Limits {
	limits, defaults := reflect.ValueOf(&l).Elem(), reflect.ValueOf(defaultLimits)
	for name, b := range limitBounds {
		set := cmp.Or(limits.FieldByName(name).Int(), defaults.FieldByName(name).Int())
		limits.FieldByName(name).SetInt(min(max(set, b.least), b.most))
	}

	return l
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

// LimitChange has the limits to set. Nil ones stay unchanged. The tags bound what can be set, and
// what holds.
type LimitChange struct {
	MemoryMB        *int  `json:"memory_mb,omitempty" db:"memory_mb" minimum:"64" maximum:"2048" doc:"Megabytes that a process may allocate."`
	CPUMilliseconds *int  `json:"cpu_milliseconds,omitempty" db:"cpu_milliseconds" minimum:"50" maximum:"60000" doc:"Processor time a request, averaged over a process."`
	AnswerSeconds   *int  `json:"answer_seconds,omitempty" db:"answer_seconds" minimum:"1" maximum:"900" doc:"Time to the answer."`
	WallSeconds     *int  `json:"wall_seconds,omitempty" db:"wall_seconds" minimum:"1" maximum:"3600" doc:"Time of a whole request."`
	Concurrency     *int  `json:"concurrency,omitempty" minimum:"1" maximum:"128" doc:"Requests that a process works on."`
	BodyMB          *int  `json:"body_mb,omitempty" db:"body_mb" minimum:"1" maximum:"200" doc:"Megabytes of a request's body."`
	Processes       *int  `json:"processes,omitempty" minimum:"1" maximum:"16" doc:"Processes at a time on each server."`
	MailPorts       *bool `json:"mail_ports,omitempty" db:"mail_ports" doc:"Functions reach ports 25, 465 and 587 of other hosts."`
}

// bounds are the least and the most that a limit can be.
type bounds struct{ least, most int64 }

// limitBounds are the bounds of [LimitChange] by field.
var limitBounds = func() map[string]bounds {
	all := map[string]bounds{}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[LimitChange]()) {
		if f.Type != reflect.TypeFor[*int]() {
			continue
		}

		least, err := strconv.ParseInt(f.Tag.Get("minimum"), 10, 64)
		most, errMost := strconv.ParseInt(f.Tag.Get("maximum"), 10, 64)
		if err := cmp.Or(err, errMost); err != nil {
			panic(fmt.Sprintf("function: the bounds of %s: %v", f.Name, err))
		}
		all[f.Name] = bounds{least, most}
	}

	return all
}()

// UpdateLimits changes the limits of a project's functions. Processes end as soon as they have
// answered; others begin under the new limits, on other servers within a second.
func (s *Service) UpdateLimits(ctx context.Context, p *projectdb.Project, c LimitChange) (Limits, error) {
	defer s.Forget(p.UUID)

	return pg.InTxValue(ctx, p.InTx, func(tx pgx.Tx) (Limits, error) {
		if err := setLimits(ctx, tx, c); err != nil {
			return Limits{}, err
		}

		return GetLimits(ctx, tx)
	})
}

func setLimits(ctx context.Context, q pg.Querier, c LimitChange) error {
	_, err := pg.Exec(ctx, q, `
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
	return err
}

// copyLimits copies the limits of a database to the database that is about to replace it.
func copyLimits(ctx context.Context, from, to pg.Querier) error {
	current, err := pg.All[LimitChange](ctx, from, `
		select memory_mb, cpu_milliseconds, answer_seconds, wall_seconds, concurrency, body_mb, processes, mail_ports
		from socle.edge_function_limits`, pgx.StrictNamedArgs{})
	if err != nil {
		return err
	}

	if _, err := pg.Exec(ctx, to, `delete from socle.edge_function_limits`, pgx.StrictNamedArgs{}); err != nil {
		return err
	}

	for _, c := range current { // one at most
		if err := setLimits(ctx, to, c); err != nil {
			return err
		}
	}

	return nil
}
