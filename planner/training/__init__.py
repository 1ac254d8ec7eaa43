"""How is the model trained: in which precision, with which optimizer, by which method?"""
