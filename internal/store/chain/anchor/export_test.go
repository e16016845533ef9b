package anchor

import (
	"net/http"
	"time"
)

// SignRequest signs a request as a bucket does.
func SignRequest(s S3, r *http.Request, body []byte, now time.Time) {
	(&bucket{S3: s}).signRequest(r, body, now)
}
