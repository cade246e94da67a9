package session

import "strings"

// stepArgs are the encoded arguments of a step's statements.
type stepArgs struct{ guard, statement, estimate [][]byte }

// encodeStep encodes the current step's arguments, and the guard's.
func (p *pipeline) encodeStep() (a stepArgs, err error) {
	s := &p.scratch
	s.reserve(p.Statement.Args, p.Estimate.Args, p.Guard.Args)

	if a.statement, err = s.encode(p.Statement.Args); err != nil {
		return a, err
	}
	if a.estimate, err = s.encode(p.Estimate.Args); err != nil {
		return a, err
	}
	if a.guard, err = s.encode(p.Guard.Args); err != nil {
		return a, err
	}

	if strings.IndexByte(p.Statement.SQL, 0) >= 0 {
		return a, ErrNUL
	}

	return a, nil
}

// queueStep queues the statements of the current step, whose settings are queued.
func (p *pipeline) queueStep(args stepArgs) error {
	if p.PreRequest != "" {
		if err := p.queueStatement(kindOther, p.Role, p.PreRequest, nil); err != nil {
			return err
		}
	}

	if p.Estimate.SQL != "" {
		explain := "explain (format json) " + p.Estimate.SQL
		if err := p.queueStatement(kindEstimate, p.Role, explain, args.estimate); err != nil {
			return err
		}
	}

	kind := kindMain
	if p.Statement.NoResult {
		kind = kindOther
	}

	return p.queueStatement(kind, p.Role, p.Statement.SQL, args.statement)
}

// runSteps checks the result of the first step and runs the further ones. refusal is the error of a
// check, of Next, or of a step that was not sent.
func (p *pipeline) runSteps() (refusal, err error) {
	check := p.check
	for n := 0; ; n++ {
		if err := p.waitWritten(); err != nil {
			return nil, err
		}

		if check != nil {
			if refusal = check(&p.result); refusal != nil {
				return refusal, nil
			}
		}
		if p.Next == nil {
			return nil, nil
		}

		step, refusal := p.Next(n, &p.result)
		if refusal != nil || step == nil {
			return refusal, nil
		}

		check = step.Check
		if refusal, err = p.runStep(step); refusal != nil || err != nil {
			return refusal, err
		}
	}
}

// runStep runs a further step.
func (p *pipeline) runStep(step *Step) (refusal, err error) {
	if !step.Statement.NoResult {
		p.result.reset(p)
	}

	current := *p.Execution
	current.Step, current.Guard = *step, Statement{}
	p.Execution = &current
	p.mayPrepare = p.mayPrepare || step.Statement.MayPrepare

	args, refusal := p.encodeStep()
	if refusal != nil {
		return refusal, nil
	}

	if err := p.queueFurther(args); err != nil {
		p.broken = true
		return nil, err
	}

	return nil, p.roundTrip()
}

// queueFurther queues the current step, which is not the first one.
func (p *pipeline) queueFurther(args stepArgs) error {
	settings := p.scratch.settingsStatement(p.Settings, false, Version{})
	if err := p.queueStatement(kindOther, "", settings, p.scratch.values); err != nil {
		return err
	}

	if err := p.queueStep(args); err != nil {
		return err
	}

	if len(p.Restore) > 0 {
		restore := p.scratch.settingsStatement(p.Restore, false, Version{})
		if err := p.queueStatement(kindOther, "", restore, p.scratch.values); err != nil {
			return err
		}
	}

	return p.flush()
}
