package webhook

import "sync/atomic"

// Stats describe the deliveries of this server.
type Stats struct {
	Projects  int   // that it delivers for
	Waiting   int64 // pending deliveries of these when they were looked at last
	Delivered int64 // since the server started
	Failed    int64 // attempts that are repeated
	Dead      int64 // deliveries given up
	Messages  int64 // taken from queues
}

// counters count the outcomes of attempts, and the messages that were taken from queues.
type counters struct{ delivered, failed, dead, messages atomic.Int64 }

// add counts the attempts of a batch.
func (c *counters) add(attempts, failed, dead int) {
	c.delivered.Add(int64(attempts - failed))
	c.failed.Add(int64(failed - dead))
	c.dead.Add(int64(dead))
}

// Stats returns what this server delivers and has delivered.
func (s *Service) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()

	all := Stats{Projects: len(s.workers), Delivered: s.counters.delivered.Load(), Failed: s.counters.failed.Load(),
		Dead: s.counters.dead.Load(), Messages: s.counters.messages.Load()}
	for _, w := range s.workers {
		all.Waiting += w.waiting.Load()
	}

	return all
}
