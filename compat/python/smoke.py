"""Sends a message, lists sessions and reads an error with the generated client."""

import os
from uuid import uuid4

from parley_client import AuthenticatedClient
from parley_client.api.messages import send_message
from parley_client.api.sessions import list_messages, list_sessions
from parley_client.models.answer import Answer
from parley_client.models.list_messages_response_404 import ListMessagesResponse404
from parley_client.models.message_request import MessageRequest
from parley_client.models.session_page import SessionPage

workspace = os.environ["PARLEY_WORKSPACE"]

with AuthenticatedClient(base_url=os.environ["PARLEY_URL"], token=os.environ["PARLEY_API_KEY"]) as client:
    answer = send_message.sync(workspace, client=client, body=MessageRequest(command="How much is 12*7+3?", stream=False))
    assert isinstance(answer, Answer) and answer.success, answer
    assert answer.output is not None and "87" in answer.output, answer.output

    page = list_sessions.sync(workspace, client=client, limit=5)
    assert isinstance(page, SessionPage), page
    assert answer.session_id in [session.session_id for session in page.data], page

    missing = list_messages.sync(workspace, uuid4(), client=client)
    assert isinstance(missing, ListMessagesResponse404), missing
    assert missing.error.code == "SESSION_NOT_FOUND" and missing.request_id, missing

print("The generated client works.")
