package builtin

import (
	"errors"
	"math/big"
	"regexp"
	"strings"
)

var (
	sumQuestion = regexp.MustCompile(
		`(?i)^\W*?(?:please )?(?:what(?:'s|’s| is| are)|how much ` +
			`(?:is|are|makes?)|calculate|compute|evaluate|solve)?\s*([-+(.\d][-+*/×÷·x^%().,\d\s]*?)\s*[=?.!]*\s*$`)
	date    = regexp.MustCompile(`^\d{4}-\d\d-\d\d$`)
	sumLike = regexp.MustCompile(`[\d)]\s*[-+*/×÷·x^%]\s*[-+(.\d]`)
)

// The limits of calculations: characters of an expression, and bits of a number, which are about
// three hundred digits.
const (
	maxSum  = 200
	maxBits = 1024
)

// evaluateQuestion finds an arithmetic question, "what is 12*7+3", and its answer.
func evaluateQuestion(question string) (expression, value string, ok bool) {
	if len(question) > maxSum+40 {
		return "", "", false
	}
	m := sumQuestion.FindStringSubmatch(question)
	if m == nil || len(m[1]) > maxSum || !sumLike.MatchString(m[1]) || date.MatchString(m[1]) {
		return "", "", false
	}
	s := &sum{rest: strings.NewReplacer("×", "*", "x", "*", "·", "*", "÷", "/", ",", "", " ", "").Replace(m[1])}
	r, err := s.parseTerms()
	switch {
	case err != nil:
	case s.rest != "":
		err = errNoSum
	case bitSize(r) > maxBits:
		err = errLarge
	}
	switch {
	case errors.Is(err, errZero), errors.Is(err, errLarge):
		return m[1], "undefined: " + err.Error(), true
	case err != nil:
		return "", "", false
	}
	return m[1], formatDecimal(r), true
}

// formatDecimal formats a number exactly if that is short, else with ten digits.
func formatDecimal(r *big.Rat) string {
	if r.IsInt() {
		return r.Num().String()
	}
	if n, exact := r.FloatPrec(); exact && n <= 10 {
		return r.FloatString(n)
	}
	return strings.TrimRight(r.FloatString(10), "0") + "…"
}

var (
	errNoSum = errors.New("not understood")
	errZero  = errors.New("a division by zero")
	errLarge = errors.New("the numbers grow too large")
)

// sum evaluates an expression from left to right. Its depth is limited by maxSum.
type sum struct{ rest string }

func (s *sum) takeOperator(ops string) byte {
	if s.rest == "" || strings.IndexByte(ops, s.rest[0]) < 0 {
		return 0
	}
	op := s.rest[0]
	s.rest = s.rest[1:]
	return op
}

func (s *sum) parseTerms() (*big.Rat, error) {
	r, err := s.parseFactors()
	for err == nil {
		op := s.takeOperator("+-")
		if op == 0 {
			return r, nil
		}
		var x *big.Rat
		if x, err = s.parseFactors(); err != nil {
			break
		}
		if op == '-' {
			x.Neg(x)
		}
		r.Add(r, x)
	}
	return nil, err
}

func (s *sum) parseFactors() (*big.Rat, error) {
	r, err := s.parseSigned()
	for err == nil {
		op := s.takeOperator("*/%")
		if op == 0 {
			return r, nil
		}
		var x *big.Rat
		if x, err = s.parseSigned(); err != nil {
			break
		}
		switch {
		case op == '*':
			r.Mul(r, x)
		case x.Sign() == 0:
			err = errZero
		case op == '/':
			r.Quo(r, x)
		case !r.IsInt() || !x.IsInt():
			err = errNoSum
		default:
			r.SetInt(new(big.Int).Rem(r.Num(), x.Num()))
		}
	}
	return nil, err
}

func (s *sum) parseSigned() (*big.Rat, error) {
	switch s.takeOperator("+-") {
	case '-':
		r, err := s.parseSigned()
		if err != nil {
			return nil, err
		}
		return r.Neg(r), nil
	case '+':
		return s.parseSigned()
	}
	return s.parsePower()
}

func (s *sum) parsePower() (*big.Rat, error) {
	r, err := s.parseAtom()
	if err != nil || s.takeOperator("^") == 0 {
		return r, err
	}
	x, err := s.parseSigned()
	switch {
	case err != nil:
		return nil, err
	case !x.IsInt():
		return nil, errNoSum
	case bitSize(x) > 10 || int(new(big.Int).Abs(x.Num()).Int64())*bitSize(r) > 4*maxBits:
		return nil, errLarge
	case x.Sign() < 0 && r.Sign() == 0:
		return nil, errZero
	}
	e := new(big.Int).Abs(x.Num())
	p := new(big.Rat).SetFrac(new(big.Int).Exp(r.Num(), e, nil), new(big.Int).Exp(r.Denom(), e, nil))
	if x.Sign() < 0 {
		p.Inv(p)
	}
	return p, nil
}

// bitSize returns the size of a number.
func bitSize(r *big.Rat) int { return max(r.Num().BitLen(), r.Denom().BitLen()) }

func (s *sum) parseAtom() (*big.Rat, error) {
	if s.takeOperator("(") != 0 {
		r, err := s.parseTerms()
		if err == nil && s.takeOperator(")") == 0 {
			err = errNoSum
		}
		return r, err
	}
	n := len(s.rest) - len(strings.TrimLeft(s.rest, "0123456789."))
	r, ok := new(big.Rat).SetString(s.rest[:n])
	if !ok {
		return nil, errNoSum
	}
	s.rest = s.rest[n:]
	return r, nil
}
