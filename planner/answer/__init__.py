"""What does an answer consist of, and what does its JSON document look like?"""
