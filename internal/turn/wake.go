package turn

import (
	"github.com/parley-server/parley/internal/session"
)

// SupportsListenNotify keeps River from sending notifications: it would send them inside the
// transaction that inserts a job, and NOTIFY holds a lock on the whole database until its
// transaction has committed, so that all starts would commit one after the other. River still
// listens; wakeQueue notifies it after the commit. Measured with 25 connections: 400 inserts take
// 290 ms with River's notifications and 150 ms without.
func (driver) SupportsListenNotify() bool { return false }

// insertTopic is the topic on which River's workers listen for new jobs.
const insertTopic = "river_insert"

// wakeQueue makes every replica look for jobs in a queue. A lost wake-up costs a worker's poll
// interval.
func (s *Service) wakeQueue(queue string) {
	s.cfg.EventLog.Hint(insertTopic, `{"queue":"`+queue+`"}`)
}

// wakeAfter calls wakeQueue once a change is committed.
func (s *Service) wakeAfter(tx *session.Tx, queue string) {
	tx.OnCommit(func() { s.wakeQueue(queue) })
}
