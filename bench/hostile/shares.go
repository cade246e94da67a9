package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

const (
	hostileProjects = 10 // of the attacker, in five organizations
	logInsEach      = 64 // in flight in each of them
	rounds          = 8  // of the bystander, before and during the attack
)

// logIns keeps log-ins of unknown end users in flight in all projects of the attacker, while the
// bystander logs in to the platform.
func logIns(ctx context.Context, s *environment) string {
	projects, err := s.moreProjects()
	if err != nil {
		return err.Error()
	}

	s.startClock()

	login := fmt.Appendf(nil, `{"email": %q, "password": %q}`, s.bystander.email, password)
	act := func() (int, error) {
		bounded, cancel := context.WithTimeout(ctx, requestTimeout)
		defer cancel()

		status, _, err := s.send(bounded, "POST", "/users/login", account{}, login, "application/json")
		return status, err
	}

	before, failedBefore := repeatAct(ctx, act)

	attack, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	for i := range len(projects) * logInsEach {
		wg.Go(func() {
			p := projects[i%len(projects)]
			path := "/projects/" + p.project + "/auth/v1/token?grant_type=password"
			for attack.Err() == nil {
				body := fmt.Appendf(nil, `{"email": "nobody%d@example.com", "password": %q}`, i, password)
				_, _, _ = s.send(attack, "POST", path, p, body, "application/json")
			}
		})
	}

	during, failed := repeatAct(ctx, act)
	stop()
	wg.Wait()

	return fmt.Sprintf("log-ins %d→%d ms, %d and %d of %d failed", before.Milliseconds(), during.Milliseconds(),
		failedBefore, failed, rounds)
}

// moreProjects creates the other projects of the attacker and returns all.
func (s *environment) moreProjects() ([]account, error) {
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

	return all, nil
}

// repeatAct returns the longest duration of an act of the bystander and how many failed.
func repeatAct(ctx context.Context, act func() (int, error)) (longest time.Duration, failed int) {
	var took []time.Duration
	for range rounds {
		began := time.Now()
		status, err := act()
		took = append(took, time.Since(began))

		if err != nil || status >= 400 {
			failed++
		}
		if ctx.Err() != nil {
			break
		}
	}

	return slices.Max(took), failed
}
