"""Frameworks that need version 2 of OpenAI's client: objects with instructor, two local functions and
a tool of Parley's in one turn with llama-index and strands. PARLEY_URL and PARLEY_API_KEY say where
the server is."""

import asyncio

from shared import BASE, KEY, MODEL, TASK, City, check, get_time, get_weather

CITY = '@structured {"city":"Oslo"}'


def instructor() -> None:
    import instructor
    from openai import OpenAI

    for mode in ("TOOLS", "TOOLS_STRICT", "JSON", "JSON_SCHEMA", "RESPONSES_TOOLS"):
        client = instructor.from_openai(OpenAI(base_url=BASE, api_key=KEY), mode=instructor.Mode[mode])
        made = client.chat.completions.create(model=MODEL, response_model=City, messages=[{"role": "user", "content": CITY}])
        assert made.city == "Oslo", (mode, made)
    client = instructor.from_openai(OpenAI(base_url=BASE, api_key=KEY))
    parts = list(client.chat.completions.create_partial(model=MODEL, response_model=City, messages=[{"role": "user", "content": CITY}]))
    assert parts[-1].city == "Oslo", parts


async def llama_index() -> None:
    from llama_index.core.agent.workflow import FunctionAgent
    from llama_index.llms.openai_like import OpenAILike

    llm = OpenAILike(model=MODEL, api_base=BASE, api_key=KEY, is_chat_model=True, is_function_calling_model=True)
    for streaming in (True, False):
        agent = FunctionAgent(tools=[get_weather, get_time], llm=llm, system_prompt="Be brief.", streaming=streaming)
        check(f"llama-index, streaming {streaming}", str(await agent.run(TASK)))
    assert llm.as_structured_llm(City).complete(CITY).raw == City(city="Oslo")


def strands() -> None:
    from strands import Agent, tool
    from strands.models.openai import OpenAIModel

    model = OpenAIModel(client_args={"base_url": BASE, "api_key": KEY}, model_id=MODEL)
    answer = Agent(model=model, tools=[tool(get_weather), tool(get_time)], callback_handler=None)(TASK)
    check("strands", str(answer).strip())
    # An object is the input of a function that may be called, and that must be called if it was not.
    made = Agent(model=model, callback_handler=None)('@call City {"city":"Oslo"}\n@say Done.', structured_output_model=City)
    assert made.structured_output == City(city="Oslo"), made.structured_output
    made = Agent(model=model, callback_handler=None)("@say Oslo.", structured_output_model=City)
    assert isinstance(made.structured_output, City), made.structured_output


if __name__ == "__main__":
    instructor()
    asyncio.run(llama_index())
    strands()
    print("The clients have ended well.")
