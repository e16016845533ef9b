// api.js calls the public API with the cookie of the signed-in member.

/** ApiError is a response with the error envelope, or a failure without one. */
export class ApiError extends Error {
  constructor(status, body, retryAfter) {
    const e = body?.error ?? {};
    super(e.message ?? (status ? `The server answered ${status}.` : "Cannot reach the server."));
    this.status = status;
    this.code = e.code ?? "";
    this.param = e.param ?? "";
    this.detail = e;
    this.violations = e.violations ?? [];
    this.requestId = body?.request_id ?? "";
    this.retryAfter = Number(retryAfter) || 0;
  }
}

/** failure makes the ApiError of a response. */
export async function failure(res) {
  let body = null;
  try { body = await res.json(); } catch { /* not our envelope */ }
  return new ApiError(res.status, body, res.headers.get("Retry-After"));
}

/** Api has the operations of one workspace. */
export class Api {
  /** root is the path of the server before every address. */
  constructor(root, workspace) {
    this.root = root;
    this.pages = `${root}/w/${encodeURIComponent(workspace)}`;
    this.base = `${root}/api/v1/workspaces/${encodeURIComponent(workspace)}`;
  }

  async call(method, path, body, headers = {}) {
    const init = { method, headers: { Accept: "application/json", ...headers }, cache: "no-store", credentials: "same-origin" };
    if (body instanceof URLSearchParams) init.body = body;
    else if (body !== undefined) {
      init.headers["Content-Type"] = "application/json";
      init.body = JSON.stringify(body);
    }
    let res;
    try { res = await fetch(path.startsWith("/") ? path : `${this.base}/${path}`, init); } catch { throw new ApiError(0); }
    if (!res.ok) throw await failure(res);
    return res.status === 204 ? null : res.json();
  }

  get(path) { return this.call("GET", path); }
  form(path, fields) { return this.call("POST", path, new URLSearchParams(fields)); }
  post(path, body, headers) { return this.call("POST", path, body, headers); }
}
