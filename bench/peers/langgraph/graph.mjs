import { Annotation, END, START, StateGraph } from '@langchain/langgraph'
import { deltas } from '../common.mjs'

const State = Annotation.Root({ deltas: Annotation(), rate: Annotation() })

export const graph = new StateGraph(State)
  .addNode('speak', async (state, config) => {
    for await (const delta of deltas(state)) config.writer(delta)
    return {}
  })
  .addEdge(START, 'speak')
  .addEdge('speak', END)
  .compile()
