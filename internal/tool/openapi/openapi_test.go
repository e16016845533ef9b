package openapi_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/store/toolset"
	"github.com/parley-server/parley/internal/tool/openapi"
)

const document = `
openapi: 3.0.3
info: {title: ERP, version: "1"}
servers: [{url: "https://erp.example/v1/"}]
paths:
  /customers/{id}:
    parameters: [{$ref: "#/components/parameters/ID"}]
    get:
      operationId: get
      summary: Get a customer.
      parameters:
        - {name: fields, in: query, description: Which, schema: {type: array, items: {type: string}}}
        - {name: X-Trace, in: header, schema: {type: string}}
        - {name: Authorization, in: header, required: true, schema: {type: string}}
      responses: {"200": {description: ok}}
    put:
      operationId: put
      requestBody: {$ref: "#/components/requestBodies/Customer"}
      responses: {"200": {description: ok}}
    post:
      operationId: clash
      requestBody: {required: true, content: {application/json: {schema: {type: object, properties: {id: {type: string}}}}}}
      responses: {"200": {description: ok}}
  /tree:
    post:
      operationId: tree
      requestBody: {content: {application/json: {schema: {$ref: "#/components/schemas/Node"}}}}
      responses: {"200": {description: ok}}
  /bad:
    post: {operationId: form, requestBody: {required: true, content: {multipart/form-data: {schema: {type: object}}}}, responses: {"200": {description: ok}}}
    get: {operationId: deep, parameters: [{name: f, in: query, style: deepObject, schema: {type: object}}], responses: {"200": {description: ok}}}
    put: {operationId: header, parameters: [{name: X-Tenant, in: header, required: true, schema: {type: string}}], responses: {"200": {description: ok}}}
    patch: {operationId: cookie, parameters: [{name: sid, in: cookie, required: true, schema: {type: string}}], responses: {"200": {description: ok}}}
    delete: {operationId: pipes, parameters: [{name: f, in: query, explode: false, schema: {type: array, items: {type: string}}}], responses: {"200": {description: ok}}}
components:
  parameters: {ID: {name: id, in: path, required: true, schema: {type: integer, minimum: 0, exclusiveMinimum: true}}}
  requestBodies:
    Customer:
      required: true
      content:
        application/json:
          schema:
            type: object
            required: [name, created]
            properties:
              name: {type: string, nullable: true, example: Ada, x-order: 1}
              created: {type: string, readOnly: true}
              parent: {$ref: "#/components/schemas/Node"}
  schemas:
    Node: {type: object, properties: {label: {type: string}, nodes: {type: array, items: {$ref: "#/components/schemas/Node"}}}}
`

// TestOperationsBecomeTools checks the input and the request of operations.
func TestOperationsBecomeTools(t *testing.T) {
	t.Parallel()
	doc, err := openapi.Parse([]byte(document))
	if err != nil {
		t.Fatal(err)
	}
	if doc.Server() != "https://erp.example/v1" || !slices.Equal(doc.Operations(), []string{"clash", "cookie", "deep", "form", "get",
		"header", "pipes", "put", "tree"}) {
		t.Errorf("%s %q", doc.Server(), doc.Operations())
	}
	const id, node = `"id":{"exclusiveMinimum":0,"type":"integer"}`,
		`"Node":{"properties":{"label":{"type":"string"},"nodes":{"items":{"$ref":"#/$defs/Node"},"type":"array"}},"type":"object"}`
	for name, want := range map[string]string{
		"get": `{"additionalProperties":false,"properties":{"fields":{"description":"Which","items":{"type":"string"},"type":"array"},` +
			id + `},"required":["id"],"type":"object"}`,
		"put": `{"$defs":{` + node + `},"additionalProperties":false,"properties":{` + id +
			`,"name":{"type":["string","null"]},"parent":{"$ref":"#/$defs/Node"}},"required":["id","name"],"type":"object"}`,
		"clash": `{"additionalProperties":false,"properties":{"body":{"properties":{"id":{"type":"string"}},"type":"object"},` + id +
			`},"required":["body","id"],"type":"object"}`,
		"tree": `{"$defs":{` + node + `},"additionalProperties":false,"properties":{"body":{"$ref":"#/$defs/Node"}},"type":"object"}`,
	} {
		tool, err := doc.Tool(name, nil)
		if err != nil || string(tool.Schema) != want {
			t.Errorf("%s: %s, %v", name, tool.Schema, err)
		}
	}
	put, err := doc.Tool("put", nil)
	if err != nil || put.HTTP.Method != "PUT" || put.HTTP.Path != "/customers/{id}" || put.HTTP.In["id"] != toolset.InPath ||
		put.HTTP.In["name"] != toolset.InBody || put.HTTP.Later {
		t.Errorf("%+v, %v", put.HTTP, err)
	}
	if clash, _ := doc.Tool("clash", nil); clash.HTTP.In["body"] != toolset.WholeBody || clash.Description != "POST /customers/{id}" {
		t.Errorf("%+v", clash)
	}
	if _, err := doc.Tool("header", map[string]string{"x-tenant": "1"}); err != nil {
		t.Error(err)
	}
}

// TestBrokenReferencesAreNamed reads documents whose references lead nowhere or elsewhere.
func TestBrokenReferencesAreNamed(t *testing.T) {
	t.Parallel()
	const head = "openapi: 3.0.3\ninfo: {title: x, version: '1'}\n"
	const body = "paths: {'/x/{id}': {post: {operationId: a, requestBody: {content: {application/json: {schema: {$ref: '%s'}}}}, " +
		"responses: {'200': {description: x}}}}}\n"
	const at = " at /paths/~1x~1{id}/post/requestBody/content/application~1json/schema "
	for text, want := range map[string]string{
		strings.ReplaceAll(body, "%s", "#/components/schemas/Costumer") +
			"components: {schemas: {Customer: {type: object}}}": `The $ref "#/components/schemas/Costumer"` + at +
			`is broken: the document has no "Costumer" there.`,
		strings.ReplaceAll(body, "%s",
			"#/components/schemas/Customer"): `The $ref "#/components/schemas/Customer"` + at + `is broken: the document has no "components" there.`,
		strings.ReplaceAll(body, "%s",
			"common.yaml#/Customer"): `The $ref "common.yaml#/Customer"` + at + `leads to another document`,
		"components: {schemas: {A: {type: array, items: {$ref: '#/components/schemas/B~1C'}}}}\npaths: {}": `The $ref "#/components/schemas/B~1C" at /components/schemas/A/items is broken: the document has no "B/C" there.`,
	} {
		if _, err := openapi.Parse([]byte(head + text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestOperationsAreRefusedWithAReason reads documents and operations that cannot be tools.
func TestOperationsAreRefusedWithAReason(t *testing.T) {
	t.Parallel()
	doc, err := openapi.Parse([]byte(document))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"form": "not described as JSON", "deep": "is an object", "header": `header "X-Tenant"`,
		"cookie": `cookie "sid"`, "pipes": "style", "none": "no operation"} {
		if _, err := doc.Tool(name, nil); !errors.As(err, new(openapi.Refusal)) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	const head = "openapi: 3.0.3\ninfo: {title: x, version: '1'}\n"
	for name, text := range map[string]string{
		"empty": "", "not YAML": "{", "swagger": "swagger: '2.0'\ninfo: {title: x, version: '1'}\npaths: {}", "a list": "[]",
		"a file": head + "paths: {/x: {get: {operationId: a, parameters: [{$ref: '/etc/passwd'}], responses: {'200': {description: x}}}}}",
		"a host": head + "paths: {/x: {get: {operationId: a, parameters: [{$ref: 'http://127.0.0.1/x.yaml'}], responses: {'200': " +
			"{description: x}}}}}",
		"a dangler": head + "paths: {/x: {get: {operationId: a, parameters: [{$ref: '#/components/parameters/x'}], responses: {'200': " +
			"{description: x}}}}}",
		"aliases": head + "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d " +
			"[*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\nx-g: " +
			"[*f,*f,*f,*f,*f,*f,*f,*f,*f]\npaths: {}",
		"large": strings.Repeat("#", openapi.MaxDocument+1),
	} {
		if _, err := openapi.Parse([]byte(text)); !errors.As(err, new(openapi.Refusal)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
