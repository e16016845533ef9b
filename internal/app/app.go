// Package app assembles the service: it reads the configuration, opens the database, starts every
// part and stops them in order. It is the only package that imports all the others, and it decides
// nothing about a conversation.
package app
