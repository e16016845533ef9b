package filestore

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/db"
	"github.com/parley-server/parley/internal/egress"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/outage"
)

const (
	// FetchTime is the time limit of a fetch, including redirects.
	FetchTime = time.Minute
	// FetchRedirects is the maximum number of redirects that it follows.
	FetchRedirects = 3

	fetchLease = 90 * time.Second // after it, the fetching process counts as dead
	fetchPause = 5 * time.Second  // before the next try; three times as long before the one after
	fetchTries = 3
	lookPause  = time.Second // after a failed look for files

	originPurpose = "origin_url of a file"
)

// fetchAll fetches files from the URLs in their tickets, as many at once as there are places, until
// ctx ends.
func (s *Store) fetchAll(ctx context.Context) error {
	looks := outage.New(s.log, "look for files to fetch")
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() {
		for work := range s.opt.Pulse.Beats(ctx) {
			if work.Fetches {
				s.wakeFetchers()
			}
		}
	})
	for {
		row, release, found, err := s.claimFetch(ctx)
		looks.Note(ctx, err)
		if found {
			running.Go(func() {
				defer s.wakeFetchers() // another file may have this place
				defer release()
				if err := s.fetchOne(ctx, row); err != nil && ctx.Err() == nil {
					s.log.WarnContext(ctx, "fetch a file", "file", row.ID, "err", err)
				}
			})
			continue
		}
		var again <-chan time.Time
		if err != nil {
			again = time.After(lookPause)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-s.news:
		case <-again:
		}
	}
}

// claimFetch leases the file that has waited longest in the next workspace, and takes a place for
// it. The lease is a column of the file's row: if a process dies, another one takes over its file.
func (s *Store) claimFetch(ctx context.Context) (row db.File, release func(), found bool, err error) {
	if ctx.Err() != nil {
		return row, nil, false, nil
	}
	ctx, cancel := shortContext(context.WithoutCancel(ctx)) // a lease without a fetch would only expire
	defer cancel()
	due, err := s.q.FetchesDue(ctx)
	if err != nil {
		return row, nil, false, fmt.Errorf("list the workspaces with files to fetch: %w", err)
	}
	for {
		workspace, release, ok := s.fetches.AcquireAny(due)
		if !ok {
			return row, nil, false, nil
		}
		row, err := s.q.FetchClaim(ctx, fetchLease.Seconds(), workspace)
		if err == nil {
			return row, release, true, nil
		}
		release()
		if !errors.Is(err, pgx.ErrNoRows) {
			return row, nil, false, fmt.Errorf("claim a file to fetch: %w", err)
		}
		due = slices.DeleteFunc(due, func(w uuid.UUID) bool { return w == workspace }) // another process was first
	}
}

// wakeFetchers wakes the fetchers of this process.
func (s *Store) wakeFetchers() {
	select {
	case s.news <- struct{}{}:
	default:
	}
}

// fetchOne fetches one file, and records the result.
func (s *Store) fetchOne(ctx context.Context, row db.File) error {
	err := s.transferFile(ctx, row)
	why, refused := errors.AsType[refusal](err)
	pause := time.Duration(0)
	switch {
	case err == nil || fault.From(err) != nil: // rejected, or another process was first
		return nil
	case refused:
	case ctx.Err() != nil: // this process stops, and another one continues
	case row.Tries < fetchTries:
		pause = fetchPause
		for range row.Tries - 1 {
			pause *= 3
		}
	default:
		// The reason is not reported: it would reveal this network to the caller.
		why, refused = "origin_url could not be fetched: its server does not answer as it should.", true
	}
	ctx, cancel := shortContext(context.WithoutCancel(ctx))
	defer cancel()
	if !refused {
		return s.q.FetchLater(ctx, pause.Seconds(), row.ID, row.Tries)
	}
	if err := s.rejectUpload(ctx, row, string(why)); fault.From(err) == nil {
		return err
	}
	return nil
}

// transferFile makes the request and stores the response. A refusal is final, and so is a fault,
// which is already recorded.
func (s *Store) transferFile(ctx context.Context, row db.File) error {
	if row.Tries > fetchTries { // it was retried too often without an end
		return refusal("origin_url could not be fetched.")
	}
	if err := s.fitsStorage(ctx, row.WorkspaceID, 0); err != nil {
		return refusedStorage(err)
	}
	origin, err := s.keys.Open(row.Origin, originPurpose, row.WorkspaceID.String(), row.ID.String())
	if err != nil {
		return fmt.Errorf("open origin_url: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, string(origin), nil)
	if err != nil {
		return refusal("origin_url cannot be parsed.")
	}
	res, err := s.opt.Guard.Client(egress.Limits{Time: FetchTime, Redirects: FetchRedirects}).Do(req)
	if refused, ok := errors.AsType[*egress.Error](err); ok {
		return refusal(strings.Replace(refused.Reason, "The URL", "origin_url", 1))
	}
	if err != nil {
		return err
	}
	defer res.Body.Close()
	switch {
	case res.StatusCode == http.StatusTooManyRequests || res.StatusCode >= 500:
		return fmt.Errorf("the origin answers %d", res.StatusCode)
	case res.StatusCode != http.StatusOK:
		return refusal(fmt.Sprintf("origin_url answers %d.", res.StatusCode))
	case res.Header.Get("Content-Encoding") != "" && res.Header.Get("Content-Encoding") != "identity":
		return refusal("origin_url answers with a compressed body, which was not asked for.")
	case res.ContentLength > MaxSize:
		return refusal(fmt.Sprintf("The file has more than %d bytes.", MaxSize))
	}
	limit := int64(MaxSize)
	if row.Size != nil {
		limit = *row.Size
	}
	got, err := s.receiveContent(ctx, res.Body, limit, func(head []byte) (string, error) {
		declared := row.Mime
		if declared == "" {
			declared = Type(row.Filename, head)
		}
		if why := judgeContent(declared, sniffType(head), row.Unrestricted); why != "" {
			return "", refusal(why)
		}
		return declared, nil
	})
	if errors.Is(err, errTooLong) {
		return refusal(fmt.Sprintf("The file has more than %d bytes.", limit))
	}
	if err != nil {
		return err
	}
	_, err = s.finishUpload(ctx, row, got)
	return refusedStorage(err)
}

// refusedStorage converts a fault about storage to a refusal: the fetch is not retried.
func refusedStorage(err error) error {
	if f := fault.From(err); f != nil && f.Code == fault.FileTooLarge {
		return refusal(f.Message)
	}
	return err
}
