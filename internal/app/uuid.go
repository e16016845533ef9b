package app

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// nativeUUID registers uuid.UUID for the type uuid. Without it pgx converts each one to a string
// and back, which took a seventh of the processor time of starting a turn.
func nativeUUID(_ context.Context, conn *pgx.Conn) error {
	m := conn.TypeMap()
	m.TryWrapEncodePlanFuncs = append([]pgtype.TryWrapEncodePlanFunc{wrapUUID}, m.TryWrapEncodePlanFuncs...)
	return nil
}

func wrapUUID(value any) (plan pgtype.WrappedEncodePlanNextSetter, next any, ok bool) {
	id, ok := value.(uuid.UUID)
	if !ok {
		return nil, nil, false
	}
	return &uuidPlan{}, pgtype.UUID{Bytes: id, Valid: true}, true
}

// uuidPlan encodes a uuid.UUID as pgx's own type.
type uuidPlan struct{ next pgtype.EncodePlan }

func (p *uuidPlan) SetNext(next pgtype.EncodePlan) { p.next = next }

func (p *uuidPlan) Encode(value any, buf []byte) ([]byte, error) {
	return p.next.Encode(pgtype.UUID{Bytes: value.(uuid.UUID), Valid: true}, buf)
}
