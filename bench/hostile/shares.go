package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	hostileProjects = 10               // projects of the attacker, in five organizations
	loadTime        = 40 * time.Second // maximum of a load
	headStart       = 3 * time.Second  // time of load before the bystander acts
	preparationTime = 5 * time.Minute
)

// contest is a load of the attacker on something that accounts share, and an act of the bystander
// that needs a share of it.
type contest struct {
	name   string // name of the act
	rounds int    // acts before the load, and during it

	// load prepares the load and returns it. It runs until its context ends.
	load func(context.Context, *environment, []account) (func(context.Context), error)
	// act prepares the act and returns it.
	act func(*environment) (act, error)
}

// act is an act of the bystander. i counts the acts.
type act func(ctx context.Context, i int) error

func (c contest) run(ctx context.Context, s *environment) string { return contend(ctx, s, c) }

// everything runs the worst loads at once.
func everything(ctx context.Context, s *environment) string {
	return contend(ctx, s, logIns, mails, restores, signIns, silence)
}

// contend measures the acts of contests before and during their loads.
func contend(ctx context.Context, s *environment, contests ...contest) string {
	projects, err := s.projects()
	if err != nil {
		return err.Error()
	}

	acts := make([]act, len(contests))
	loads := make([]func(context.Context), len(contests))
	for i, c := range contests {
		if acts[i], err = c.act(s); err != nil {
			return err.Error()
		}
		if loads[i], err = c.load(ctx, s, projects); err != nil {
			return err.Error()
		}
	}

	before := perform(ctx, contests, acts, 0)

	s.startClock()

	attack, stop := context.WithTimeout(ctx, loadTime)
	defer stop()

	var wg sync.WaitGroup
	for _, load := range loads {
		wg.Go(func() { load(attack) })
	}

	select {
	case <-time.After(headStart):
	case <-ctx.Done():
	}

	during := perform(attack, contests, acts, 1)
	stop()
	wg.Wait()

	var told []string
	for i, c := range contests {
		told = append(told, c.name+" "+before[i].compare(during[i]))
	}

	return strings.Join(told, "; ")
}

// performance is the result of the rounds of an act.
type performance struct {
	took   []time.Duration
	failed int
	reason error // reason of the last failure
}

// compare describes the acts before a load and during it.
func (p performance) compare(during performance) string {
	text := fmt.Sprintf("%d→%d ms (longest %d→%d), failed %d→%d of %d", milliseconds(p.took, 50),
		milliseconds(during.took, 50), milliseconds(p.took, 100), milliseconds(during.took, 100), p.failed,
		during.failed, len(during.took))
	if err := cmpError(during.reason, p.reason); err != nil {
		text += fmt.Sprintf(" (%v)", err)
	}

	return text
}

func cmpError(a, b error) error {
	if a != nil {
		return a
	}

	return b
}

func milliseconds(took []time.Duration, percentile int) int64 {
	if len(took) == 0 {
		return 0
	}

	slices.Sort(took)
	return took[(len(took)-1)*percentile/100].Milliseconds()
}

// perform carries out the rounds of all acts, those of different contests at once.
func perform(ctx context.Context, contests []contest, acts []act, phase int) []performance {
	results := make([]performance, len(acts))
	var wg sync.WaitGroup
	for i, act := range acts {
		wg.Go(func() {
			for round := range contests[i].rounds {
				began := time.Now()
				err := act(ctx, phase*contests[i].rounds+round)
				if ctx.Err() != nil { // cut off by the end of the load
					break
				}

				results[i].took = append(results[i].took, time.Since(began))

				if err != nil {
					results[i].failed++
					results[i].reason = err
				}
			}
		})
	}
	wg.Wait()

	return results
}

// projects returns the projects of the attacker, which the first call creates.
func (s *environment) projects() ([]account, error) {
	if s.shared != nil {
		return s.shared, nil
	}

	all := []account{s.account}
	organization := ""
	for i := 1; i < hostileProjects; i++ {
		if i%2 == 0 {
			created, err := s.json("POST", "/organizations", s.account, `{"name": "more"}`)
			if err != nil {
				return nil, err
			}

			organization = fmt.Sprintf(`, "organization_uuid": %q`, created.text("content", "uuid"))
		}

		p := s.account
		project, err := s.json("POST", "/projects", p, fmt.Sprintf(`{"name": "more %d"%s}`, i, organization))
		if err != nil {
			return nil, err
		}

		p.project = project.text("content", "uuid")
		key, err := s.json("POST", "/projects/"+p.project+"/keys", p, `{"name": "more", "kind": "publishable"}`)
		if err != nil {
			return nil, err
		}

		p.key = key.text("metadata", "key")
		all = append(all, p)
	}

	s.shared = all
	return all, nil
}

// request sends a request of an act. A status of failure is an error.
func (s *environment) request(ctx context.Context, method, path string, a account, body string) ([]byte, error) {
	bounded, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()

	status, text, err := s.send(bounded, method, path, a, []byte(body), "application/json")
	if err == nil && status >= 400 {
		err = fmt.Errorf("status %d: %.200s", status, text)
	}

	return text, err
}

// configure changes the settings of a project's end users.
func (s *environment) configure(a account, settings string) error {
	_, err := s.json("PUT", "/projects/"+a.project+"/auth-settings", a, settings)
	return err
}

// keepAsking calls f in n loops until ctx ends.
func keepAsking(ctx context.Context, n int, f func(i int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			for ctx.Err() == nil {
				f(i)
			}
		})
	}
	wg.Wait()
}

// errNotInTime is the failure of an act whose effect does not show.
var errNotInTime = errors.New("not in time")

// await polls until done reports true or fails, at most for limit.
func await(ctx context.Context, limit time.Duration, done func() (bool, error)) error {
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()

	clock := time.NewTicker(sampleInterval)
	defer clock.Stop()

	for {
		if ok, err := done(); ok || err != nil {
			return err
		}

		select {
		case <-bounded.Done():
			return errNotInTime
		case <-clock.C:
		}
	}
}
