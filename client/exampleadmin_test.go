package client_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/parley-server/parley/client"
)

// Create an API key for a web site. A repeat with the same Idempotency-Key creates no second one, and
// its response does not have the text of the key.
func ExampleAdmin_CreateKey() {
	c, err := client.New(options) // with a key of scope admin
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	admin := c.Admin().Once("web-site-2026-11")
	for range 2 {
		key, err := admin.CreateKey(context.Background(), client.KeyGrant{Name: "web site", Scopes: []string{"chat"}, Life: 90 * 24 * time.Hour})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(key.Name, key.Scopes, len(key.Text) > 0)
	}
	// Output:
	// web site [chat] true
	// web site [chat] false
}

// Change the hosts that tools may reach, unless another administrator changes them at the same time.
func ExampleAdmin_PutEgress() {
	ctx := context.Background()
	c, err := client.New(options)
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	policy, err := c.Admin().Egress(ctx)
	if err != nil {
		log.Fatal(err)
	}
	policy.Hosts = append(policy.Hosts, "api.example.com")
	changed, err := c.Admin().PutEgress(ctx, policy, policy.ETag)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(changed.Hosts)
	_, err = c.Admin().PutEgress(ctx, policy, policy.ETag) // of the version before
	if e, ok := errors.AsType[*client.Error](err); ok {
		fmt.Println(e.Status, e.Code)
	}
	// Output:
	// [api.example.com]
	// 412 PRECONDITION_FAILED
}

// Make several changes from one reading. An object that has changed since is not overwritten.
func ExampleAdmin_Since() {
	ctx := context.Background()
	c, err := client.New(options)
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	admin := c.Admin()
	before, err := admin.Workspace(ctx) // before the objects
	if err != nil {
		log.Fatal(err)
	}
	if _, err := admin.PutToolRule(ctx, "bash", "deny"); err != nil { // another administrator
		log.Fatal(err)
	}
	mine := admin.Since(before.LogPosition)
	if _, err := mine.PutToolRule(ctx, "read", "allow"); err != nil {
		log.Fatal(err)
	}
	_, err = mine.PutToolRule(ctx, "bash", "allow")
	if e, ok := errors.AsType[*client.Error](err); ok {
		fmt.Println(e.Code)
	}
	// Output: PRECONDITION_FAILED
}
